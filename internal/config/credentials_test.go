package config

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// rotating returns credentials with an admin token from a file, and the path of the file.
func rotating(t *testing.T, token string) (*Credentials, string) {
	t.Helper()
	path := write(t, filepath.Join(t.TempDir(), "token"), token+"\n")
	c := load(t, options(t, "ADMIN_API_TOKEN_FILE="+path))
	if _, err := CreateSecrets(c, true); err != nil {
		t.Fatal(err)
	}
	k, err := NewCredentials(c)
	if err != nil {
		t.Fatal(err)
	}
	return k, path
}

// swap replaces a file atomically.
func swap(t *testing.T, path, text string) {
	t.Helper()
	next := write(t, path+".next", text)
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

func TestCredentials_MatchByRole(t *testing.T) {
	c := load(t, options(
		t, "ADMIN_API_TOKEN=admin-secret-admin", "PLATFORM_API_TOKEN=platform-secret-1", "MARKET_PRICE_SYNC_SECRET=market-old-secret,market-new-secret",
	))
	k, err := NewCredentials(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		role, presented string
		want            bool
	}{
		{RoleAdmin, "admin-secret-admin", true},
		{RoleAdmin, "admin-secret-admin ", false},
		{RoleAdmin, "platform-secret-1", false},
		{RoleAdmin, "", false},
		{RoleMarket, "market-old-secret", true},
		{RoleMarket, "market-new-secret", true},
		{RoleMarket, "market-old-secret,market-new-secret", false},
		{RolePlatform, "market-old-secret", false},
		{"unknown", "admin-secret-admin", false},
	} {
		if got := k.Match(x.role, x.presented); got != x.want {
			t.Errorf("%s with %q: got %v, want %v", x.role, x.presented, got, x.want)
		}
	}
}

func TestNewCredentials_RequiresEverySecret(t *testing.T) {
	c := load(t, options(t, "ADMIN_API_TOKEN=admin-secret-admin", "PLATFORM_API_TOKEN=platform-secret-1"))
	if _, err := NewCredentials(c); err == nil || !strings.Contains(err.Error(), "MARKET_PRICE_SYNC_SECRET is not set") {
		t.Errorf("got error %v, want one about MARKET_PRICE_SYNC_SECRET", err)
	}
}

// TestCredentials_RotateWithoutAFailure compares secrets in four goroutines without a
// pause. Meanwhile the file changes from the old secret to both and then to the new secret.
func TestCredentials_RotateWithoutAFailure(t *testing.T) {
	k, path := rotating(t, "the-old-secret-of-all")
	old, _ := k.Identify(RoleAdmin, "the-old-secret-of-all")
	const clients = 4
	var presented, moved atomic.Int64
	var all sync.WaitGroup
	stop, move := make(chan struct{}), make(chan struct{})
	present := func(secret string, until <-chan struct{}) {
		for {
			select {
			case <-until:
				return
			default:
			}
			if !k.Match(RoleAdmin, secret) {
				t.Errorf("the secret %s was refused, want it accepted", secret)
			}
			presented.Add(1)
		}
	}
	for range clients {
		all.Go(func() {
			present("the-old-secret-of-all", move)
			moved.Add(1)
			present("the-new-secret-of-all", stop)
		})
	}
	served := func(n int64) {
		for target := presented.Load() + n; presented.Load() < target; {
			runtime.Gosched()
		}
	}
	reload := func(text string) {
		t.Helper()
		served(100)
		swap(t, path, text)
		if changed, err := k.Reload(); err != nil || !changed {
			t.Errorf("Reload: got %v, %v; want true", changed, err)
		}
		served(100)
	}
	reload("the-old-secret-of-all\nthe-new-secret-of-all\n")
	if !k.Live(RoleAdmin, old) {
		t.Error("old secret before its removal: got a refusal, want it accepted")
	}
	close(move)
	for moved.Load() < clients {
		runtime.Gosched()
	}
	reload("the-new-secret-of-all\n")
	close(stop)
	all.Wait()
	if k.Match(RoleAdmin, "the-old-secret-of-all") || k.Live(RoleAdmin, old) {
		t.Error("old secret after its removal: got it accepted, want a refusal")
	}
}

func TestCredentials_StayUnchangedAfterAFault(t *testing.T) {
	for name, broken := range map[string]string{"empty": "", "spaces": "two words\n", "twice": strings.Repeat("the-old-secret-of-all\n", 2), "short": "fifteen-letters\n"} {
		t.Run(name, func(t *testing.T) {
			k, path := rotating(t, "the-old-secret-of-all")
			swap(t, path, broken)
			if changed, err := k.Reload(); err == nil || changed {
				t.Errorf("Reload: got %v, %v; want an error", changed, err)
			}
			if !k.Match(RoleAdmin, "the-old-secret-of-all") {
				t.Error("previous secret: got a refusal, want it accepted")
			}
		})
	}
	t.Run("deleted", func(t *testing.T) {
		k, path := rotating(t, "the-old-secret-of-all")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Reload(); err == nil || !k.Match(RoleAdmin, "the-old-secret-of-all") {
			t.Errorf("got error %v, want an error and a valid previous secret", err)
		}
	})
}

// TestCredentials_MissingConfigFileKeepsTheSecrets removes the configuration file for a moment, as
// some editors do. The secrets that an earlier start generated must not become valid meanwhile.
func TestCredentials_MissingConfigFileKeepsTheSecrets(t *testing.T) {
	o := options(t)
	if _, err := CreateSecrets(load(t, o), true); err != nil {
		t.Fatal(err)
	}
	o.File = write(t, filepath.Join(t.TempDir(), "assay.conf"), "ADMIN_API_TOKEN=from-the-config-file\n")
	k, err := NewCredentials(load(t, o))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(o.File); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Reload(); err == nil || !k.Match(RoleAdmin, "from-the-config-file") {
		t.Errorf("got error %v, want an error and a valid previous secret", err)
	}
	write(t, o.File, "ADMIN_API_TOKEN=from-the-new-config-file\nMARKET_PRICE_TTL=faulty\n")
	if changed, err := k.Reload(); err != nil || !changed || !k.Match(RoleAdmin, "from-the-new-config-file") {
		t.Errorf("fault in another setting: got %v, %v; want a reload", changed, err)
	}
}

func TestCredentials_SecretForPriceLists(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "key"), "key-in-a-file\n")
	o := options(t, "SHADOWPAY_API_KEY=key-in-the-environment", "SPACED_API_KEY=a b", "ACCENT_API_KEY=schlüssel", "STEAMAPIS_API_KEY_FILE="+path, "BROKEN_API_KEY_FILE="+path+".none")
	c := load(t, o)
	if _, err := CreateSecrets(c, true); err != nil {
		t.Fatal(err)
	}
	k, err := NewCredentials(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"SHADOWPAY_API_KEY": "key-in-the-environment", "STEAMAPIS_API_KEY": "key-in-a-file"} {
		if got, err := k.Secret(name); got != want || err != nil {
			t.Errorf("%s: got secret %q, error %v; want %q", name, got, err, want)
		}
	}
	for name, why := range map[string]string{
		"BROKEN_API_KEY": "BROKEN_API_KEY_FILE", "NOT_SET_API_KEY": "is not set", "SPACED_API_KEY": "without spaces", "ACCENT_API_KEY": "printable ASCII",
		"ADMIN_API_TOKEN": "it must end in _API_KEY", "HOME": "it must end in _API_KEY", "_API_KEY": "it must end in _API_KEY",
	} {
		if got, err := k.Secret(name); got != "" || err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got secret %q, error %v; want an error with %q", name, got, err, why)
		}
	}
	swap(t, path, "rotated-key\n")
	if got, _ := k.Secret("STEAMAPIS_API_KEY"); got != "rotated-key" {
		t.Errorf("after a rotation: got %q, want %q", got, "rotated-key")
	}
}

// lines is a log writer that sends each line to a channel.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(bytes.TrimSpace(line))
	return len(line), nil
}

func TestCredentials_WatchLogsEachChangeOnce(t *testing.T) {
	k, path := rotating(t, "the-old-secret-of-all")
	ctx, cancel := context.WithCancel(context.Background())
	ticks, hangup, log := make(chan time.Time), make(chan os.Signal), make(lines, 1)
	var watching sync.WaitGroup
	watching.Go(func() { k.Watch(ctx, ticks, hangup, slog.New(slog.NewTextHandler(log, nil))) })
	defer watching.Wait()
	defer cancel()

	expect := func(want string) {
		t.Helper()
		if got := <-log; !strings.Contains(got, want) || strings.Contains(got, "the-old-secret-of-all") || strings.Contains(got, "the-new-secret-of-all") {
			t.Errorf("got log line %s, want %s without secrets", got, want)
		}
	}
	ticks <- time.Time{}
	swap(t, path, "the-new-secret-of-all\n")
	ticks <- time.Time{}
	expect("changed=true")
	swap(t, path, "")
	ticks <- time.Time{}
	expect("previous secrets remain valid")
	ticks <- time.Time{}
	ticks <- time.Time{} // received only after the previous tick was handled
	hangup <- os.Interrupt
	expect("previous secrets remain valid")
	swap(t, path, "the-new-secret-of-all\n")
	ticks <- time.Time{}
	expect("changed=false")
	hangup <- os.Interrupt
	expect("changed=false")
	if !k.Match(RoleAdmin, "the-new-secret-of-all") {
		t.Error("new secret: got a refusal, want it accepted")
	}
	select {
	case line := <-log:
		t.Errorf("got another log line %s, want none", line)
	default:
	}
}
