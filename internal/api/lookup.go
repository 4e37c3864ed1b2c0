package api

import (
	"io"
	"math"
	"net/http"
	"strconv"

	"assay/internal/apikey"
	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/strictjson"
)

// maxLookup is the maximum number of items in a lookup or a request for quotes.
const maxLookup = 1000

// lookupBody describes the body of POST /api/prices/lookup. decodeLookup decodes it.
type lookupBody struct {
	Items        []lookupKey `json:"items"`
	QueueMissing bool        `json:"queueMissing,omitempty"`
}

type lookupKey struct {
	AppID          int32  `json:"appId,omitempty"`
	MarketHashName string `json:"marketHashName"`
	Phase          string `json:"phase,omitempty"`
}

func (h itemHandlers) lookup(c *call) (any, error) {
	keys, queueMissing, err := decodeLookup(c.Body)
	if err != nil {
		return nil, err
	}
	if queueMissing && !c.allows(apikey.PricesWrite) {
		return nil, fault.New(fault.Forbidden, "forbidden", "This API key cannot queue items. queueMissing needs the scope %s.", apikey.PricesWrite)
	}
	found, err := h.Readers.Items.Lookup(c.Context(), keys, c.fields(), c.currency())
	if err != nil {
		return nil, err
	}
	if missing := found.ToQueue(); queueMissing && len(missing) > 0 {
		h.audit(c)
		if err := h.Inventories.QueueMissing(c.Context(), missing); err != nil {
			return nil, err
		}
		if found, err = h.Readers.Items.Lookup(c.Context(), keys, c.fields(), c.currency()); err != nil {
			return nil, err
		}
	}
	return response{status: http.StatusOK, contentType: jsonType, body: found.JSON()}, nil
}

// decodeLookup decodes the body of a lookup.
func decodeLookup(body io.Reader) (keys []catalog.Key, queueMissing bool, err error) {
	in := strictjson.NewReader(body)
	hasItems := false
	in.Object([]string{"items", "queueMissing"}, func(member string) bool {
		switch member {
		case "items":
			hasItems = true
			keys = readKeys(in)
		case "queueMissing":
			queueMissing, _ = in.Bool()
		default:
			return false
		}
		return true
	})
	in.Require("", "items", hasItems)
	return keys, queueMissing, in.Finish()
}

// decodeKeys decodes a body with items only.
func decodeKeys(body io.Reader) (keys []catalog.Key, err error) {
	in := strictjson.NewReader(body)
	hasItems := false
	in.Object([]string{"items"}, func(member string) bool {
		if hasItems = member == "items"; hasItems {
			keys = readKeys(in)
		}
		return hasItems
	})
	in.Require("", "items", hasItems)
	return keys, in.Finish()
}

// readKeys decodes up to maxLookup items.
func readKeys(in *strictjson.Reader) (keys []catalog.Key) {
	in.Array(func(i int) {
		if i == maxLookup {
			in.Stop(fault.New(fault.TooLarge, "too_many_items", "The request has too many items. Send at most %d.", maxLookup))
			return
		}
		keys = append(keys, readKey(in, i))
	})
	return keys
}

// readKey decodes the item at index i.
func readKey(in *strictjson.Reader, i int) catalog.Key {
	key := catalog.Key{AppID: catalog.CS2}
	hasName := false
	read := in.Object([]string{"appId", "marketHashName", "phase"}, func(member string) bool {
		switch member {
		case "appId":
			app, _ := in.Int(1, math.MaxInt32)
			key.AppID = int32(app)
		case "marketHashName":
			hasName = true
			key.Name, _ = in.Text(1, catalog.MaxName)
		case "phase":
			if in.Null() {
				break
			}
			key.Phase, _ = in.Text(0, catalog.MaxName)
			if err := catalog.CheckPhase(key.Phase); err != nil {
				in.Fault("%v", err)
			}
		default:
			return false
		}
		return true
	})
	if read {
		in.Require("/items/"+strconv.Itoa(i), "marketHashName", hasName)
	}
	return key
}
