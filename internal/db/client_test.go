package db

import "testing"

func TestClientAddress_KeepsThePasswordOutOfArguments(t *testing.T) {
	for address, want := range map[string][2]string{
		"postgres://u:s%20e@h:5433/db?sslmode=require":                   {"postgres://u@h:5433/db?sslmode=require", "s e"},
		"postgres://h/db?user=u&password=s&pool_max_conns=8":             {"postgres://h/db?user=u", "s"},
		"postgres://u@/db?host=%2Frun&default_query_exec_mode=exec":      {"postgres://u@/db?host=%2Frun", ""},
		"postgresql://u@h/db?statement_cache_capacity=0&sslmode=disable": {"postgresql://u@h/db?sslmode=disable", ""},
	} {
		bare, password, err := clientAddress(address)
		if err != nil || bare != want[0] || password != want[1] {
			t.Errorf("%s: got address %s, password %q, error %v, want %s, %q", address, bare, password, err, want[0], want[1])
		}
	}
}
