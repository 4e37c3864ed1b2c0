package app

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// newOwner returns a unique name for this process: host, process id and random digits.
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
