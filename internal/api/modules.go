package api

import (
	"slices"

	"assay/internal/fault"
)

// trading reports whether a path belongs to the market, the wallet or fees.
func trading(path string) bool {
	return slices.Contains([]string{"listings", "trades", "wallet-ledger", "payment-fee-rules", "community"}, tag(path))
}

// modules splits all operations by whether their module is on or off.
func (s *server) modules() (on, off []operation) {
	for _, op := range s.operations() {
		if s.PricesOnly && trading(op.path) {
			off = append(off, op)
		} else {
			on = append(on, op)
		}
	}
	return on, off
}

// noRoute returns the error for a path without a route.
func (s *server) noRoute(c *call) error {
	if op, _, allow := s.off.find(c.Method, c.URL.EscapedPath()); op != nil || allow != nil {
		return fault.New(fault.NotFound, "module_off",
			"The module of this path is off on this server. To turn it on, set MODULES to prices,market,wallet and restart the server.")
	}
	return fault.New(fault.NotFound, "unknown_path", "Unknown path. See /docs for all routes.")
}
