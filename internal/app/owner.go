package app

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// newOwner returns a unique name for this process. It consists of host name, process id and
// random digits.
func newOwner() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	const most = 40 // the complete name must fit into the application_name of PostgreSQL
	host = strings.Join(strings.Fields(host), "-")
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	return fmt.Sprintf("%.*s-%d-%s", most, host, os.Getpid(), hex.EncodeToString(random))
}
