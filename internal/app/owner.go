package app

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// newOwner makes a name for this process that no other one has or ever had:
// people see by it where it runs, and what is random in it makes it unique.
func newOwner() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	const most = 40 // so that the whole fits into the name of a session
	host = strings.Join(strings.Fields(host), "-")
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	return fmt.Sprintf("%.*s-%d-%s", most, host, os.Getpid(), hex.EncodeToString(random))
}
