package api

import (
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/market"
	"assay/internal/strictjson"
	"assay/internal/user"
	"assay/internal/view"
)

// listingHandlers serve listings.
type listingHandlers struct {
	*Deps
	once *once
}

// listingBody describes the body of POST /api/listings. decodeOffers decodes it.
type listingBody struct {
	UserID    string   `json:"userId"`
	AppID     int32    `json:"appId"`
	ContextID string   `json:"contextId"`
	AssetID   string   `json:"assetId"`
	Price     int64    `json:"price"`
	Currency  string   `json:"currency"`
	Inventory sentPush `json:"inventory,omitzero"`
}

// listingsBody describes the body of POST /api/listings/batch. decodeOffers decodes it.
type listingsBody struct {
	UserID    string      `json:"userId"`
	AppID     int32       `json:"appId"`
	ContextID string      `json:"contextId"`
	Items     []offerBody `json:"items"`
	Inventory sentPush    `json:"inventory,omitzero"`
}

type offerBody struct {
	AssetID  string `json:"assetId"`
	Price    int64  `json:"price"`
	Currency string `json:"currency"`
}

// sentPush is an inventory push inside the body of a listing. Only its items are required.
type sentPush struct {
	AppID      int32      `json:"appId,omitempty"`
	ContextID  string     `json:"contextId,omitempty"`
	SnapshotAt string     `json:"snapshotAt,omitempty" format:"date-time"`
	Items      []pushItem `json:"items"`
}

// offeredList is the response to a batch of listings.
type offeredList struct {
	Items []view.Offered `json:"items"`
}

func (h listingHandlers) createListing(c *call) (any, error) {
	offers, err := decodeOffers(c.Body, false, h.Now())
	if err != nil {
		return nil, err
	}
	return h.once.do(c, offers.UserID, func(seal seal) error {
		return h.Market.Create(c.Context(), offers, func(tx *db.Tx, created []market.Created) error {
			if created[0].Refused != nil {
				return created[0].Refused
			}
			made := view.OfferedOf(&created[0], h.Currency, tx.Now())
			return seal(tx, http.StatusCreated, "/api/listings/"+made.Listing.ID, view.NewListing{Listing: *made.Listing, PriceCheck: *made.PriceCheck})
		})
	})
}

func (h listingHandlers) createListings(c *call) (any, error) {
	offers, err := decodeOffers(c.Body, true, h.Now())
	if err != nil {
		return nil, err
	}
	return h.once.do(c, offers.UserID, func(seal seal) error {
		return h.Market.Create(c.Context(), offers, func(tx *db.Tx, created []market.Created) error {
			made := offeredList{make([]view.Offered, len(created))}
			for i := range created {
				made.Items[i] = view.OfferedOf(&created[i], h.Currency, tx.Now())
			}
			return seal(tx, http.StatusOK, "", made)
		})
	})
}

// decodeOffers decodes the body of a request to create listings. If several is true, the
// offers are in the member items. Otherwise the body is one offer.
func decodeOffers(body io.Reader, several bool, now time.Time) (market.Offers, error) {
	in := strictjson.NewReader(body)
	o := market.Offers{}
	one := offerReader{in: in}
	known, needed := []string{"userId", "appId", "contextId", "inventory"}, []string{"userId", "appId", "contextId"}
	if several {
		known, needed = append(known, "items"), append(needed, "items")
	} else {
		known = append(known, offerMembers()...)
	}
	had := map[string]bool{}
	in.Object(known, func(member string) bool {
		had[member] = true
		switch {
		case member == "userId":
			o.UserID, _ = in.Text(1, user.MaxID)
		case member == "appId":
			app, _ := in.Int(1, math.MaxInt32)
			o.AppID = int32(app)
		case member == "contextId":
			o.ContextID, _ = in.Text(1, inventory.MaxOpaque)
		case member == "inventory":
			if !in.Null() {
				push := inventory.ReadPush(in, "/inventory", now)
				o.Inventory = &push
			}
		case several && member == "items":
			in.Array(func(i int) { readOffer(in, i, &o) })
		default:
			return !several && one.member(member)
		}
		return true
	})
	for _, name := range needed {
		in.Require("", name, had[name])
	}
	if !several {
		one.require("")
		o.Offers = []market.Offer{one.offer}
	}
	if p := o.Inventory; p != nil {
		if (p.AppID != 0 && p.AppID != o.AppID) || (p.ContextID != "" && p.ContextID != o.ContextID) {
			in.FaultAt("/inventory", "must have the appId and contextId of the listing")
		}
		p.AppID, p.ContextID = o.AppID, o.ContextID
	}
	return o, in.Finish()
}

// readOffer decodes the item at index i of a batch.
func readOffer(in *strictjson.Reader, i int, o *market.Offers) {
	if i == market.MaxOffers {
		in.Stop(fault.New(fault.TooLarge, "too_many_items", "The request lists too many assets. Send at most %d.", market.MaxOffers))
		return
	}
	one := offerReader{in: in}
	if in.Object(offerMembers(), one.member) {
		one.require("/items/" + strconv.Itoa(i))
	}
	o.Offers = append(o.Offers, one.offer)
}

func offerMembers() []string { return []string{"assetId", "price", "currency"} }

// offerReader decodes the members of an offer.
type offerReader struct {
	in                     *strictjson.Reader
	offer                  market.Offer
	asset, price, currency bool // true if the member is present
}

func (r *offerReader) member(name string) bool {
	switch name {
	case "assetId":
		r.asset = true
		r.offer.AssetID, _ = r.in.Text(1, inventory.MaxOpaque)
	case "price":
		r.price = true
		r.offer.Price, _ = r.in.Int(1, market.MaxPrice)
	case "currency":
		r.currency = true
		r.offer.Currency = readCurrency(r.in)
	default:
		return false
	}
	return true
}

func (r *offerReader) require(pointer string) {
	r.in.Require(pointer, "assetId", r.asset)
	r.in.Require(pointer, "price", r.price)
	r.in.Require(pointer, "currency", r.currency)
}

func (h listingHandlers) listings(c *call) (any, error) {
	f := view.ListingFilter{
		UserID: c.values["userId"], AppID: int32(c.values.number("appId")), Name: c.values["name"], State: c.values["state"],
		Currency: c.values["currency"], MinPrice: c.values.number("minPrice"), MaxPrice: c.values.number("maxPrice"),
		From: c.values.moment("from"), To: c.values.moment("to"),
	}
	if phase, given := c.values["phase"]; given {
		f.Phase = &phase
	}
	if f.Phase != nil && f.Name == "" {
		return nil, fault.New(fault.Invalid, "invalid_parameters", "The parameter phase requires the parameter name.")
	}
	return h.Readers.Market.Listings(c.Context(), f, c.values["cursor"], c.limit())
}

func (h listingHandlers) listing(c *call) (any, error) {
	id, err := c.idOf("listing")
	if err != nil {
		return nil, err
	}
	return h.Readers.Market.Listing(c.Context(), id)
}

func (h listingHandlers) cancelListing(c *call) (any, error) {
	id, err := c.idOf("listing")
	if err != nil {
		return nil, err
	}
	l, err := h.Market.Cancel(c.Context(), id)
	return view.ListingOf(&l), err
}

// cancelBody describes the body of POST /api/listings/cancel. decodeCancel decodes it.
type cancelBody struct {
	IDs []string `json:"ids"`
}

// withdrawnList is the response to POST /api/listings/cancel.
type withdrawnList struct {
	Items []view.Withdrawn `json:"items"`
}

func (h listingHandlers) cancelListings(c *call) (any, error) {
	ids, err := decodeCancel(c.Body)
	if err != nil {
		return nil, err
	}
	results, err := h.Market.CancelAll(c.Context(), ids)
	list := withdrawnList{make([]view.Withdrawn, len(results))}
	for i := range results {
		list.Items[i] = view.WithdrawnOf(ids[i], &results[i])
	}
	return list, err
}

func decodeCancel(body io.Reader) (ids []int64, err error) {
	in := strictjson.NewReader(body)
	has := false
	in.Object([]string{"ids"}, func(member string) bool {
		if member != "ids" {
			return false
		}
		has = true
		in.Array(func(i int) {
			if i == market.MaxCancels {
				in.Stop(fault.New(fault.TooLarge, "too_many_items", "The request cancels too many listings. Send at most %d ids.", market.MaxCancels))
				return
			}
			ids = append(ids, readID(in, "listing"))
		})
		return true
	})
	in.Require("", "ids", has)
	return ids, in.Finish()
}

// priceBody describes the body of PATCH /api/listings/{id}. decodePrice decodes it.
type priceBody struct {
	Price int64 `json:"price"`
}

func decodePrice(body io.Reader) (price int64, err error) {
	in := strictjson.NewReader(body)
	has := false
	in.Object([]string{"price"}, func(member string) bool {
		if member != "price" {
			return false
		}
		has = true
		price, _ = in.Int(1, market.MaxPrice)
		return true
	})
	in.Require("", "price", has)
	return price, in.Finish()
}

func (h listingHandlers) repriceListing(c *call) (any, error) {
	id, err := c.idOf("listing")
	if err != nil {
		return nil, err
	}
	price, err := decodePrice(c.Body)
	if err != nil {
		return nil, err
	}
	l, err := h.Market.Reprice(c.Context(), id, price)
	return view.ListingOf(&l), err
}
