package idempotency

import "assay/internal/wallet"

// Sealed returns the response in the form that the ledger seals.
func (a *Response) Sealed(k Key) *wallet.StoredResponse {
	return &wallet.StoredResponse{
		Route: k.Route, Role: k.Role, User: k.User, Key: k.Key, Request: wallet.Hash(a.Request),
		Status: a.Status, ContentType: a.ContentType, Location: a.Location, Body: a.Body, Expires: a.Expires, Seal: a.Seal,
	}
}
