package once

import "assay/internal/wallet"

// Sealed is the answer to k as it is sealed.
func (a *Answer) Sealed(k Key) *wallet.Answer {
	return &wallet.Answer{
		Route: k.Route, Role: k.Role, User: k.User, Key: k.Key, Request: wallet.Hash(a.Request),
		Status: a.Status, ContentType: a.ContentType, Location: a.Location, Body: a.Body, Expires: a.Expires, Seal: a.Seal,
	}
}
