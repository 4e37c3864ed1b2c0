package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/randtest"
)

// mostMemory is the memory limit of a server that receives large inventories, in bytes.
const mostMemory = 192 << 20

// largeInventory returns a push with the given number of assets. Its content differs between
// users.
func largeInventory(user, assets, bytes int) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, _ = fmt.Fprintf(in, `{"appId":730,"contextId":"2","snapshotAt":"%s","items":[`, time.Now().UTC().Format(time.RFC3339Nano))
		for i := range assets {
			comma := ","
			if i == 0 {
				comma = ""
			}
			if _, err := fmt.Fprintf(in, `%s{"assetId":"%d","marketHashName":"Pattern %d (Field-Tested)","classId":"%s","instanceId":"%s"}`,
				comma, user*assets+i+1, i%500, strings.Repeat("1", bytes/2), strings.Repeat("2", bytes/2)); err != nil {
				return // the server has closed the connection
			}
		}
		_, _ = io.WriteString(in, "]}")
		_ = in.Close()
	}()
	return out
}

// TestPushes_LargestInventoriesUseBoundedMemory concurrently pushes four inventories of 50,000
// assets, or twelve in long mode. The server may reject some of them temporarily.
func TestPushes_LargestInventoriesUseBoundedMemory(t *testing.T) {
	onBoth(t, testLargePushes)
}

func testLargePushes(t *testing.T, on engine) {
	s := on.newServer(t)
	s.start()
	users := randtest.Count(4, 12)
	var wg sync.WaitGroup
	for user := range users {
		wg.Go(func() {
			status, body, err := s.call(http.MethodPost, fmt.Sprintf("/api/inventory/large-%d/sync", user), largeInventory(user, 50_000, 256))
			if err != nil || status != http.StatusOK && status != http.StatusServiceUnavailable {
				t.Errorf("push of user %d: got %d %.200s, %v, want 200 or 503", user, status, body, err)
			}
		})
	}
	wg.Wait()
	peak := s.peakMemory()
	t.Logf("%d pushes of 50,000 assets: %d MiB at most", users, peak>>20)
	if peak > mostMemory {
		t.Errorf("the process used %d MiB, want at most %d", peak>>20, mostMemory>>20)
	}
}

// TestPushes_ContinueDuringStalledUploads pushes an inventory while other uploads are stalled.
func TestPushes_ContinueDuringStalledUploads(t *testing.T) {
	s := newServer(t)
	s.start()
	head := "POST /api/inventory/stalled/sync HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + s.secret("PLATFORM_API_TOKEN") + "\r\n"
	for _, rest := range []string{
		"Content-Length: 33000000\r\n\r\n" + `{"items":[` + strings.Repeat("{},", 100_000),
		"Content-Length: 33000000\r\n\r\n" + `{"items":[`,
		"Transfer-Encoding: chunked\r\n\r\n2\r\n{ \r\n",
	} {
		for range 3 {
			c, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, head+rest); err != nil {
				t.Fatal(err)
			}
		}
	}
	began := time.Now()
	status, body, err := s.call(http.MethodPost, "/api/inventory/u1/sync", largeInventory(1, 20_000, 100))
	if took := time.Since(began); err != nil || status != http.StatusOK || took > 25*time.Second {
		t.Errorf("push over a slow connection: got %d %.200s, %v after %v, want 200 within 25s", status, body, err, took)
	}
}
