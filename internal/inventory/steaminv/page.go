package steaminv

import (
	"context"
	"io"
	"math"
	"strconv"
	"strings"

	"assay/internal/catalog"
	"assay/internal/inventory"
	"assay/internal/provider/feed"
)

// The JSON members that the package reads from a response.
var (
	assetNames       = []string{"appid", "contextid", "assetid", "classid", "instanceid", "amount"}
	descriptionNames = []string{"classid", "instanceid", "market_hash_name", "tradable", "marketable", "actions"}
	actionNames      = []string{"link"}
	propertiesNames  = []string{"appid", "contextid", "assetid", "asset_properties"}
	propertyNames    = []string{"propertyid", "int_value", "float_value", "string_value"}
)

// page is one page of an inventory.
type page struct {
	owner        string // Steam id
	place        Place
	assets       []inventory.Asset // describe adds the descriptions
	descriptions map[class]description
	properties   map[string]inventory.Properties // properties by asset id
	total        int64                           // number of assets in the whole inventory
	more         bool                            // whether another page follows
	last         string                          // asset id for the request of the next page
}

// class identifies a description. Several assets can share it.
type class struct{ id, instance string }

type description struct {
	name                 string // market hash name, or empty
	tradable, marketable bool
	link                 string // inspect link with placeholders, or empty
}

// readPage reads the response for one page.
func readPage(ctx context.Context, body io.Reader, owner string, place Place) (*page, error) {
	p := &page{owner: owner, place: place, descriptions: map[class]description{}, properties: map[string]inventory.Properties{}}
	err := feed.Read(ctx, providerName, body, nil, func(r *feed.Reader) error {
		if err := p.read(r); err != nil {
			return err
		}
		r.Count(len(p.assets))
		return p.describe()
	})
	return p, err
}

// read reads the members of a response. They may have any order.
func (p *page) read(r *feed.Reader) error {
	seen := map[string]bool{}
	err := r.Object(func(name []byte) error {
		member := string(name)
		switch member {
		case "assets", "descriptions", "asset_properties", "success", "total_inventory_count", "more_items", "last_assetid":
		default:
			return r.Skip()
		}
		if seen[member] {
			return feed.Malformed("member %s given twice", member)
		}
		seen[member] = true
		switch member {
		case "assets":
			return p.rows(r, assetNames, p.asset)
		case "descriptions":
			return p.rows(r, descriptionNames, p.description)
		case "asset_properties":
			return p.rows(r, propertiesNames, p.assetProperties)
		}
		cell, err := r.Cell()
		if err != nil {
			return err
		}
		return p.scalar(member, cell)
	})
	switch {
	case err != nil:
		return err
	case !seen["success"]:
		return feed.Malformed("member success is missing")
	case !seen["total_inventory_count"]:
		return feed.Malformed("member total_inventory_count is missing")
	case p.more && p.last == "":
		return feed.Malformed("more_items is set without last_assetid")
	}
	return nil
}

// scalar reads a member that is neither an array nor an object.
func (p *page) scalar(member string, c feed.Cell) (err error) {
	switch member {
	case "success":
		ok, err := flag(c)
		if err == nil && !ok {
			err = feed.Malformed("success is %s", feed.Clip(c.Text))
		}
		return err
	case "total_inventory_count":
		p.total, err = whole(c, 0, math.MaxInt32)
	case "more_items":
		p.more, err = flag(c)
	case "last_assetid":
		if c.Kind > feed.Null {
			p.last, err = id(c)
		}
	}
	return err
}

// rows reads a list of objects.
func (p *page) rows(r *feed.Reader, names []string, row func(*feed.Reader, []feed.Cell) error) error {
	cells := make([]feed.Cell, len(names))
	n := 0
	return r.Array(func() error {
		if n++; n > maxPage {
			return feed.TooManyItems(maxPage)
		}
		ok, err := r.Row(names, cells)
		if err == nil && !ok {
			err = feed.Malformed("a row is not an object or has a duplicate member")
		}
		if err != nil {
			return err
		}
		return row(r, cells)
	})
}

// asset reads a row of the assets.
func (p *page) asset(_ *feed.Reader, cells []feed.Cell) (err error) {
	a := inventory.Asset{Amount: 1, InstanceID: "0"}
	if a.AssetID, err = p.assetID(cells); err != nil {
		return err
	}
	if a.ClassID, err = id(cells[3]); err != nil {
		return err
	}
	if a.InstanceID, err = instance(cells[4]); err != nil {
		return err
	}
	if cells[5].Kind > feed.Null {
		if a.Amount, err = whole(cells[5], 1, math.MaxInt32); err != nil {
			return err
		}
	}
	p.assets = append(p.assets, a)
	return nil
}

// assetID returns the asset id of a row. It returns an error if the row belongs to another
// inventory. The first cells are the app, the context and the asset.
func (p *page) assetID(cells []feed.Cell) (assetID string, err error) {
	for i, want := range []string{strconv.Itoa(int(p.place.AppID)), p.place.ContextID} {
		if c := cells[i]; c.Kind > feed.Null && string(c.Text) != want {
			return "", feed.Malformed("a row belongs to another inventory")
		}
	}
	return id(cells[2])
}

func (p *page) description(r *feed.Reader, cells []feed.Cell) (err error) {
	var of class
	if of.id, err = id(cells[0]); err != nil {
		return err
	}
	if of.instance, err = instance(cells[1]); err != nil {
		return err
	}
	var d description
	if d.name, err = name(cells[2]); err != nil {
		return err
	}
	if d.tradable, err = flag(cells[3]); err != nil {
		return err
	}
	if d.marketable, err = flag(cells[4]); err != nil {
		return err
	}
	// The market requires a name, so an asset without one is not marketable.
	d.marketable = d.marketable && d.name != ""
	action := make([]feed.Cell, len(actionNames))
	err = r.EachRow(cells[5], actionNames, action, func() error {
		if link := string(action[0].Text); d.link == "" && len(link) <= inventory.MaxInspect && strings.Contains(link, "csgo_econ_action_preview") {
			d.link = link
		}
		return nil
	})
	p.descriptions[of] = d
	return err
}

// assetProperties reads the properties of an asset.
func (p *page) assetProperties(r *feed.Reader, cells []feed.Cell) error {
	assetID, err := p.assetID(cells)
	if err != nil {
		return err
	}
	var known inventory.Properties
	property := make([]feed.Cell, len(propertyNames))
	err = r.EachRow(cells[3], propertyNames, property, func() error {
		to := slot(&known, string(property[0].Text))
		for _, value := range property[1:] {
			if to != nil && (value.Kind == feed.Text || value.Kind == feed.Number) && len(value.Text) <= inventory.MaxInspect {
				*to = string(value.Text)
			}
		}
		return nil
	})
	p.properties[assetID] = known
	return err
}

// slot returns a pointer to the property with the given number. It returns nil for
// properties that are not stored.
func slot(p *inventory.Properties, number string) *string {
	switch number {
	case "1":
		return &p.Seed
	case "2":
		return &p.Wear
	case "3":
		return &p.Charm
	case "5":
		return &p.NameTag
	case "6":
		return &p.Certificate
	default:
		return nil
	}
}

// describe copies the descriptions to the assets. Each page has the descriptions of all its
// assets.
func (p *page) describe() error {
	for i := range p.assets {
		a := &p.assets[i]
		d, ok := p.descriptions[class{a.ClassID, a.InstanceID}]
		if !ok {
			return feed.Malformed("the description of an asset is missing")
		}
		a.Name, a.Tradable, a.Marketable = d.name, d.tradable, d.marketable
		properties := p.properties[a.AssetID]
		a.Properties = &properties
		a.Inspect = p.inspect(a, d.link)
	}
	return nil
}

// propertyPrefix starts a placeholder for a property in a link. The property's number and a
// percent sign follow.
const propertyPrefix = "%propid:"

// inspect fills in the placeholders of a link. It returns "" if a property is missing.
func (p *page) inspect(a *inventory.Asset, link string) string {
	properties := *a.Properties
	link = strings.NewReplacer("%owner_steamid%", p.owner, "%assetid%", a.AssetID).Replace(link)
	filled, rest, more := strings.Cut(link, propertyPrefix)
	for more {
		number, after, closed := strings.Cut(rest, "%")
		value := slot(&properties, number)
		if !closed || value == nil || *value == "" {
			return ""
		}
		var text string
		text, rest, more = strings.Cut(after, propertyPrefix)
		filled += *value + text
	}
	if len(filled) > inventory.MaxInspect {
		return ""
	}
	return filled
}

// id reads a decimal id. It returns text, because most ids exceed 2^53.
func id(c feed.Cell) (string, error) {
	text := string(c.Text)
	if (c.Kind != feed.Text && c.Kind != feed.Number) || text == "" || len(text) > 20 || strings.Trim(text, "0123456789") != "" {
		return "", feed.Malformed("invalid id %s", feed.Clip(c.Text))
	}
	return text, nil
}

// instance reads an instance id. It returns "0" if the id is missing.
func instance(c feed.Cell) (string, error) {
	if c.Kind <= feed.Null {
		return "0", nil
	}
	return id(c)
}

// name reads a market hash name unchanged. It returns "" if the name is missing.
func name(c feed.Cell) (string, error) {
	switch {
	case c.Kind <= feed.Null, c.Kind == feed.Text && len(c.Text) == 0:
		return "", nil
	case c.Kind == feed.Text && len(c.Text) <= catalog.MaxName && catalog.CheckName(string(c.Text)) == nil:
		return string(c.Text), nil
	}
	return "", feed.Malformed("invalid name %s", feed.Clip(c.Text))
}

// whole reads a whole number from low to high. It may be a JSON number or a string.
func whole(c feed.Cell, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(string(c.Text), 10, 64)
	if err != nil || c.Kind == feed.Other || n < low || n > high {
		return 0, feed.Malformed("invalid number %s", feed.Clip(c.Text))
	}
	return n, nil
}

// flag reads a flag, which is 0, 1 or a boolean. It returns false if the flag is missing.
func flag(c feed.Cell) (bool, error) {
	switch text := string(c.Text); {
	case c.Kind <= feed.Null, text == "0", text == "false":
		return false, nil
	case text == "1", text == "true":
		return true, nil
	default:
		return false, feed.Malformed("invalid flag %s", feed.Clip(c.Text))
	}
}
