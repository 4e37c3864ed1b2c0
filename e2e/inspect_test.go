package e2e

import (
	encoding "encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strconv"
	"testing"
	"time"

	"assay/internal/randtest"
)

// TestInspect_ContinuesAfterKills pushes inventories with assets to inspect. It repeatedly
// kills the server during the inspection. Finally each asset must be inspected with the
// correct result.
func TestInspect_ContinuesAfterKills(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		const assets = 3_000
		s := on.newServer(t)
		r := randtest.New(t)
		s.start()
		rounds := randtest.Count(3, 40)
		for round := range rounds {
			var items []asset
			for i := range assets {
				items = append(items, asset{
					AssetID: strconv.Itoa(1 + i), MarketHashName: "Item",
					Inspect: "steam://run/730//+csgo_econ_action_preview%20" + certificate(uint64(1+i), uint64(round)),
				})
			}
			s.push(fmt.Sprint("u", round%2), 730, items)
			time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
			s.kill()
			s.start()
		}
		type inspected struct {
			AssetID    string
			Seed       *uint64
			Inspection struct{ State string }
		}
		for user := range min(2, rounds) {
			last := uint64((rounds-1-user)/2*2 + user)
			s.await("inspections", func() bool {
				for _, row := range all[inspected](s, fmt.Sprint("/api/inventory/u", user)) {
					if row.Inspection.State != "done" || row.Seed == nil || *row.Seed != last {
						return false
					}
				}
				return true
			})
			if n := len(all[inspected](s, fmt.Sprint("/api/inventory/u", user))); n != assets {
				t.Errorf("got %d rows, want %d", n, assets)
			}
		}
	})
}

// certificate returns a certificate with an asset ID and a seed.
func certificate(assetID, seed uint64) string {
	raw := []byte{0}
	for _, f := range [][2]uint64{{2, assetID}, {3, 7}, {4, 282}, {5, 6}, {6, 4}, {7, 0x3d000000}, {8, seed}} {
		raw = encoding.AppendUvarint(encoding.AppendUvarint(raw, f[0]<<3), f[1])
	}
	c := crc32.ChecksumIEEE(raw)
	return hex.EncodeToString(encoding.BigEndian.AppendUint32(raw, c&0xffff^uint32(len(raw)-1)*c))
}
