package api

import (
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"assay/internal/fault"
	"assay/internal/idempotency"
	"assay/internal/inventory"
	"assay/internal/market"
	"assay/internal/strictjson"
	"assay/internal/user"
	"assay/internal/view"
)

// listingBody describes what POST /api/listings takes; decodeOffers reads it.
type listingBody struct {
	UserID    string   `json:"userId"`
	AppID     int32    `json:"appId"`
	ContextID string   `json:"contextId"`
	AssetID   string   `json:"assetId"`
	Price     int64    `json:"price"`
	Currency  string   `json:"currency"`
	Inventory sentPush `json:"inventory,omitzero"`
}

// listingsBody describes what POST /api/listings/batch takes; decodeOffers reads
// it.
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

// sentPush is a push that comes with a listing; a list of its items will do.
type sentPush struct {
	AppID      int32      `json:"appId,omitempty"`
	ContextID  string     `json:"contextId,omitempty"`
	SnapshotAt string     `json:"snapshotAt,omitempty" format:"date-time"`
	Items      []pushItem `json:"items"`
}

// offeredList answers a batch.
type offeredList struct {
	Items []view.Offered `json:"items"`
}

func (s *server) createListing(w http.ResponseWriter, c *call) error {
	offers, err := decodeOffers(c.Body, false, s.Now())
	if err != nil {
		return err
	}
	return s.once(w, c, offers.UserID, func(seal seal) error {
		return s.Trading.List(c.Context(), offers, func(tx idempotency.ResponseStore, made []view.Offered) error {
			if made[0].Refused != nil {
				return made[0].Refused
			}
			l := made[0].Listing
			return seal(tx, http.StatusCreated, "/api/listings/"+l.ID, view.NewListing{Listing: *l, PriceCheck: *made[0].PriceCheck})
		})
	})
}

func (s *server) createListings(w http.ResponseWriter, c *call) error {
	offers, err := decodeOffers(c.Body, true, s.Now())
	if err != nil {
		return err
	}
	return s.once(w, c, offers.UserID, func(seal seal) error {
		return s.Trading.List(c.Context(), offers, func(tx idempotency.ResponseStore, made []view.Offered) error {
			return seal(tx, http.StatusOK, "", offeredList{made})
		})
	})
}

// decodeOffers reads what is to be listed: several things, or one, whose members
// then lie beside the others.
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
			in.FaultAt("/inventory", "must be of the appId and contextId of what is listed")
		}
		p.AppID, p.ContextID = o.AppID, o.ContextID
	}
	return o, in.Finish()
}

// readOffer reads the item at index i of a batch.
func readOffer(in *strictjson.Reader, i int, o *market.Offers) {
	if i == market.MostOffers {
		in.Stop(fault.New(fault.TooLarge, "too_many_items", "A request can list at most %d assets.", market.MostOffers))
		return
	}
	one := offerReader{in: in}
	if in.Object(offerMembers(), one.member) {
		one.require("/items/" + strconv.Itoa(i))
	}
	o.Offers = append(o.Offers, one.offer)
}

func offerMembers() []string { return []string{"assetId", "price", "currency"} }

// offerReader reads the members of an offer.
type offerReader struct {
	in                     *strictjson.Reader
	offer                  market.Offer
	asset, price, currency bool // there were
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

func (s *server) listings(w http.ResponseWriter, c *call) error {
	f := view.ListingFilter{
		UserID: c.values["userId"], AppID: int32(c.values.number("appId")), Name: c.values["name"], State: c.values["state"],
		Currency: c.values["currency"], MinPrice: c.values.number("minPrice"), MaxPrice: c.values.number("maxPrice"),
		From: c.values.moment("from"), To: c.values.moment("to"),
	}
	if phase, given := c.values["phase"]; given {
		f.Phase = &phase
	}
	if f.Phase != nil && f.Name == "" {
		return fault.New(fault.Invalid, "invalid_parameters", "The parameter phase requires name.")
	}
	page, err := s.Reader.Listings(c.Context(), f, c.values["cursor"], c.limit())
	return answer(w, page, err)
}

func (s *server) listing(w http.ResponseWriter, c *call) error {
	id, err := c.idOf("listing")
	if err != nil {
		return err
	}
	listing, err := s.Reader.Listing(c.Context(), id)
	return answer(w, listing, err)
}

func (s *server) cancelListing(w http.ResponseWriter, c *call) error {
	id, err := c.idOf("listing")
	if err != nil {
		return err
	}
	listing, err := s.Trading.CancelListing(c.Context(), id)
	return answer(w, listing, err)
}

// cancelBody describes what POST /api/listings/cancel takes; decodeCancel reads it.
type cancelBody struct {
	IDs []string `json:"ids"`
}

// withdrawnList answers the cancellation of several listings.
type withdrawnList struct {
	Items []view.Withdrawn `json:"items"`
}

func (s *server) cancelListings(w http.ResponseWriter, c *call) error {
	ids, err := decodeCancel(c.Body)
	if err != nil {
		return err
	}
	items, err := s.Trading.CancelListings(c.Context(), ids)
	return answer(w, withdrawnList{items}, err)
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
			if i == market.MostCancels {
				in.Stop(fault.New(fault.TooLarge, "too_many_items", "A request can cancel at most %d listings.", market.MostCancels))
				return
			}
			ids = append(ids, readID(in, "listing"))
		})
		return true
	})
	in.Require("", "ids", has)
	return ids, in.Finish()
}

// priceBody describes the new price of a listing; decodePrice reads it.
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

func (s *server) repriceListing(w http.ResponseWriter, c *call) error {
	id, err := c.idOf("listing")
	if err != nil {
		return err
	}
	price, err := decodePrice(c.Body)
	if err != nil {
		return err
	}
	listing, err := s.Trading.RepriceListing(c.Context(), id, price)
	return answer(w, listing, err)
}
