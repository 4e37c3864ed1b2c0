package steaminvtest

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/provider/providertest"
)

// Inventory is a user's inventory of one game and context. Its rows are JSON in Steam's
// format.
type Inventory struct {
	Assets       []Asset
	Descriptions map[[2]string]string // rows by class and instance; "0" means no instance
	Properties   map[string]string    // rows by asset id; may be nil
	Hidden       bool                 // whether the response has the count but no assets
	Concealed    int                  // number of additional assets that appear only in the count
}

// Asset is a row of the assets.
type Asset struct {
	ID, Class, Instance string // Instance may be empty
	Row                 string // the row as JSON
}

func (a *Asset) class() [2]string { return [2]string{a.Class, cmp.Or(a.Instance, "0")} }

// Read parses a recorded response. The server returns its rows unchanged.
func Read(recorded []byte) (*Inventory, error) {
	var response struct {
		Assets       []jsontext.Value `json:"assets"`
		Descriptions []jsontext.Value `json:"descriptions"`
		Properties   []jsontext.Value `json:"asset_properties"`
	}
	if err := json.Unmarshal(recorded, &response); err != nil {
		return nil, fmt.Errorf("recorded inventory: %w", err)
	}
	i := &Inventory{Descriptions: map[[2]string]string{}, Properties: map[string]string{}}
	for _, row := range response.Assets {
		a, err := read(row)
		if err != nil {
			return nil, err
		}
		i.Assets = append(i.Assets, a)
	}
	for _, row := range response.Descriptions {
		a, err := read(row)
		if err != nil {
			return nil, err
		}
		i.Descriptions[a.class()] = a.Row
	}
	for _, row := range response.Properties {
		a, err := read(row)
		if err != nil {
			return nil, err
		}
		i.Properties[a.ID] = a.Row
	}
	return i, nil
}

// read parses the ids of a row.
func read(row jsontext.Value) (Asset, error) {
	var a struct {
		AssetID    string `json:"assetid"`
		ClassID    string `json:"classid"`
		InstanceID string `json:"instanceid"`
	}
	if err := json.Unmarshal(row, &a); err != nil {
		return Asset{}, fmt.Errorf("row of a recorded inventory: %w", err)
	}
	return Asset{a.AssetID, a.ClassID, a.InstanceID, string(row)}, nil
}

// Item is an asset of an inventory that New creates.
type Item struct {
	AssetID, ClassID string
	InstanceID       string // may be empty
	Name             string // if empty, the asset is not marketable
	Amount           int    // default 1
	Untradable       bool
	Properties       string // JSON array of properties; may be empty
}

// New returns an inventory with items.
func New(appID int32, contextID string, items ...Item) *Inventory {
	i := &Inventory{Descriptions: map[[2]string]string{}, Properties: map[string]string{}}
	for _, it := range items {
		instance := ""
		if it.InstanceID != "" {
			instance = `,"instanceid":"` + it.InstanceID + `"`
		}
		head := fmt.Sprintf(`{"appid":%d,"contextid":"%s","assetid":"%s"`, appID, contextID, it.AssetID)
		a := Asset{it.AssetID, it.ClassID, it.InstanceID, fmt.Sprintf(`%s,"classid":"%s"%s,"amount":"%d"}`, head, it.ClassID, instance, max(it.Amount, 1))}
		i.Assets = append(i.Assets, a)
		marketable, name := 0, ""
		if it.Name != "" {
			marketable, name = 1, `,"market_hash_name":`+providertest.Quote(it.Name)
		}
		tradable := 1
		if it.Untradable {
			tradable = 0
		}
		i.Descriptions[a.class()] = fmt.Sprintf(`{"appid":%d,"classid":"%s"%s,"currency":0,"tradable":%d%s,"commodity":0,"marketable":%d,"tags":[]}`,
			appID, it.ClassID, instance, tradable, name, marketable)
		if it.Properties != "" {
			i.Properties[it.AssetID] = head + `,"asset_properties":` + it.Properties + `}`
		}
	}
	return i
}
