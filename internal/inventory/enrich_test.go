package inventory_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/internal/inventory"
	"assay/internal/user"
	"assay/internal/view"
)

const (
	karambit = "★ Karambit | Doppler (Factory New)"
	fade     = "★ Karambit | Fade (Factory New)"
	wear     = "0.02670255117118358612060546875"
)

// certificate returns the certificate of an asset in Steam's encoding. Its float value is the
// constant wear.
func certificate(assetID string, paint, seed uint64) string {
	id, _ := strconv.ParseUint(assetID, 10, 64)
	raw := []byte{0}
	for _, f := range [][2]uint64{{2, id}, {3, 507}, {4, paint}, {5, 6}, {6, 3}, {7, uint64(math.Float32bits(0.02670255117118358612060546875))}, {8, seed}} {
		raw = binary.AppendUvarint(binary.AppendUvarint(raw, f[0]<<3), f[1])
	}
	c := crc32.ChecksumIEEE(raw)
	return hex.EncodeToString(binary.BigEndian.AppendUint32(raw, c&0xffff^uint32(len(raw)-1)*c))
}

// pulled returns an asset as a pull from Steam returns it.
func pulled(id, name string, paint uint64) inventory.Asset {
	a := asset(id, name)
	a.Properties = &inventory.Properties{Seed: "721", Wear: wear, Certificate: certificate(id, paint, 721)}
	return a
}

// pushed returns an asset as the platform pushes it, with an inspect link.
func pushed(id, name string, paint uint64) inventory.Asset {
	a := asset(id, name)
	a.Inspect = "steam://run/730//+csgo_econ_action_preview%20" + certificate(id, paint, 721)
	return a
}

// inspect performs all pending inspections.
func (p *fixture) inspect() {
	p.Helper()
	for more := true; more; {
		var err error
		if more, err = p.Inspect(p.Context()); err != nil {
			p.Fatal(err)
		}
	}
}

// finding returns the phase, the value and the inspection of a row of user u as text.
func (p *fixture) finding(assetID string) string {
	p.Helper()
	key, _, err := user.Key(p.Context(), p.store, "u")
	if err != nil {
		p.Fatal(err)
	}
	rows, err := view.ReadInventory(p.Context(), p.store, key, 0, 0, 1<<20)
	if err != nil {
		p.Fatal(err)
	}
	for i := range rows {
		if v, n := &rows[i], &rows[i].Inspection; v.AssetID == assetID {
			return fmt.Sprintf("%s|%d|%s|%s|%s|%s|%d|%d", v.Phase, v.Value, n.State, n.Code, n.Source, n.Wear, n.Seed, n.Finish)
		}
	}
	return "row not found"
}

func TestInspect_ChangesARowToThePhaseOfItsCertificate(t *testing.T) {
	p := newFixture(t)
	p.sync("u", pushAt(0, pulled("1", karambit, 419), pulled("2", fade, 38)))
	p.price(karambit, 500)
	p.sync("u", pushAt(1, pulled("1", karambit, 419), pulled("2", fade, 38), asset("3", karambit)))
	same(t, "calls of Inspectable", p.inspectable, 1)
	p.queued = 0
	p.inspect()
	same(t, "Doppler without a price", p.finding("1"), "Phase 2|0|done||property|0.026702551171183586|721|419")
	same(t, "item of a finish without phases", p.finding("2"), "|0|done||property|0.026702551171183586|721|38")
	same(t, "row without an inspection", p.finding("3"), "|500|||||-1|-1")
	same(t, "calls of Queued", p.queued, 1)
	same(t, "queue entries", p.count(`SELECT count(*) FROM missing_price m JOIN item i ON i.id = m.item_id WHERE i.phase = 'Phase 2'`), 1)

	// Later syncs keep the phase and copy its price.
	before := p.version()
	same(t, "same push", p.sync("u", pushAt(1, pulled("1", karambit, 419), pulled("2", fade, 38), asset("3", karambit))),
		inventory.Result{Unchanged: 3, PricedRows: 1})
	same(t, "database version", p.version(), before)
	p.price(karambit, 900)
	more := pulled("1", karambit, 419)
	more.Amount = 2
	same(t, "changed", p.sync("u", pushAt(2, more)), inventory.Result{Changed: 1, Removed: 2, PricedRows: 1})
	same(t, "row", p.finding("1"), "Phase 2|900|done||property|0.026702551171183586|721|419")
	same(t, "inspections", p.count(`SELECT count(*) FROM inspection`), 1)
}

func TestInspect_CopiesThePriceOfAKnownPhase(t *testing.T) {
	p := newFixture(t)
	ruby := asset("9", karambit)
	ruby.Phase = "Ruby"
	p.sync("u", pushAt(0, ruby, pulled("1", karambit, 415)))
	p.price(karambit, 700)
	p.queued = 0
	p.inspect()
	same(t, "row", p.finding("1"), "Ruby|700|done||property|0.026702551171183586|721|415")
	same(t, "calls of Queued", p.queued, 0)
}

func TestInspect_UnconfirmedLinksDoNotChangeThePhase(t *testing.T) {
	p := newFixture(t)
	link := asset("2", karambit)
	link.Inspect = certificate("2", 415, 721)
	link.Properties = &inventory.Properties{}
	alone := asset("3", karambit)
	alone.Properties = &inventory.Properties{Certificate: certificate("0", 415, 721)}
	p.sync("u", pushAt(0, pushed("1", karambit, 415), link, alone))
	p.price(karambit, 500)
	p.sync("u", pushAt(1, pushed("1", karambit, 415), link, alone))
	p.inspect()
	// The rows keep the item without a phase. A later refresh applies the price of this item.
	same(t, "pushed link", p.finding("1"), "|0|done||pushed|0.026702551171183586|721|415")
	same(t, "link in Steam's response", p.finding("2"), "|0|done||link|0.026702551171183586|721|415")
	same(t, "unconfirmed certificate", p.finding("3"), "|0|done||property|0.026702551171183586|721|415")
	same(t, "items", p.count(`SELECT count(*) FROM item`), 1)
}

func TestInspect_ReportsContradictionsAndKeepsThePhase(t *testing.T) {
	p := newFixture(t)
	with := func(change func(*inventory.Asset)) inventory.Asset {
		a := pulled("1", karambit, 415)
		change(&a)
		return a
	}
	minute := 0
	for want, a := range map[string]inventory.Asset{
		"|0|contradiction|seed|property|0.026702551171183586|722|415":     with(func(a *inventory.Asset) { a.Properties.Seed = "722" }),
		"|0|contradiction|wear|property|0.02669999934732914|721|415":      with(func(a *inventory.Asset) { a.Properties.Wear = "0.0267" }),
		"|0|contradiction|name_tag|property|0.026702551171183586|721|415": with(func(a *inventory.Asset) { a.Properties.NameTag = "Mine" }),
		"|0|contradiction|asset_id|property|0.026702551171183586|721|415": with(func(a *inventory.Asset) { a.Properties.Certificate = certificate("2", 415, 721) }),
		"|0|contradiction|finish|property|0.026702551171183586|721|568":   with(func(a *inventory.Asset) { a.Properties.Certificate = certificate("1", 568, 721) }),
		"|0|contradiction|link|property|0.026702551171183586|721|415":     with(func(a *inventory.Asset) { a.Inspect = certificate("1", 418, 721) }),
		"Phase 1|0|contradiction|phase|property|0.026702551171183586|721|415": with(func(a *inventory.Asset) {
			a.Phase = "Phase 1"
		}),
		"|0|failed|bad_property|property|0.026702551171183586|721|415": with(func(a *inventory.Asset) { a.Properties.Seed = "-1" }),
		"|0|failed|bad_checksum|property|0.026702551171183586|721|-1": with(func(a *inventory.Asset) {
			a.Properties.Certificate = certificate("1", 415, 721)[:44] + "00000000"
		}),
	} {
		minute++
		p.sync("u", pushAt(minute, a))
		p.inspect()
		same(t, "row", p.finding("1"), want)
	}
	old := asset("2", karambit)
	old.Inspect = "steam://rungame/730/76561202255233023/+csgo_econ_action_preview%20S76561190000000001A2D7935523998312483177"
	p.sync("u", pushAt(100, old))
	p.inspect()
	same(t, "old link", p.finding("2"), "|0|failed|old_link|pushed||-1|-1")
}

func TestSync_ForAListingStartsNoInspection(t *testing.T) {
	p := newFixture(t)
	listing := func(minute int, assets ...inventory.Asset) {
		t.Helper()
		if _, err := p.Sync(t.Context(), "u", pushAt(minute, assets...), inventory.Listing); err != nil {
			t.Fatal(err)
		}
	}
	listing(0, pulled("1", karambit, 415))
	p.inspect()
	same(t, "calls of Inspectable after a sync for a listing", p.inspectable, 0)
	same(t, "row after a sync for a listing", p.finding("1"), "|0|none||||-1|-1")
	same(t, "calls of Queued", p.queued, 1)
	same(t, "normal sync", p.sync("u", pushAt(0, pulled("1", karambit, 415))), inventory.Result{Unchanged: 1})
	same(t, "calls of Inspectable after a normal sync", p.inspectable, 1)
	p.inspect()
	same(t, "row after a normal sync", p.finding("1"), "Ruby|0|done||property|0.026702551171183586|721|415")
	listing(1, pulled("1", karambit, 415))
	same(t, "row after the same sync for a listing", p.finding("1"), "Ruby|0|done||property|0.026702551171183586|721|415")
	listing(2, pulled("1", karambit, 418))
	same(t, "row with a new certificate", p.finding("1"), "|0|none||||-1|-1")
}

func TestSync_PushKeepsTheProperties(t *testing.T) {
	p := newFixture(t)
	p.sync("u", pushAt(0, pulled("1", karambit, 415)))
	p.inspect()
	same(t, "push", p.sync("u", pushAt(1, asset("1", karambit))), inventory.Result{Unchanged: 1})
	same(t, "row", p.finding("1"), "Ruby|0|done||property|0.026702551171183586|721|415")
	bare := asset("1", karambit)
	bare.Properties = &inventory.Properties{}
	same(t, "pull without properties", p.sync("u", pushAt(2, bare)), inventory.Result{Changed: 1})
	same(t, "row", p.finding("1"), "|0|||||-1|-1")
	same(t, "calls of Inspectable", p.inspectable, 1)
}

func TestInspect_IgnoresOtherGames(t *testing.T) {
	p := newFixture(t)
	push := pushAt(0, pushed("1", "hat", 1))
	push.AppID = 440
	p.sync("u", push)
	same(t, "calls of Inspectable", p.inspectable, 0)
	same(t, "inspections", p.count(`SELECT count(*) FROM inspection`), 0)
}

func TestInspect_RunsConcurrentlyWithSyncs(t *testing.T) {
	p := newFixture(t)
	const each = 250
	push := func(user, minute int) inventory.Push {
		var assets []inventory.Asset
		for i := range each {
			assets = append(assets, pulled(strconv.Itoa(1000*user+i), karambit, uint64(415+(i+minute)%7)))
		}
		return pushAt(minute, assets...)
	}
	var working sync.WaitGroup
	p.Service.Queued, p.Service.Inspectable = func() {}, func() {}
	for user := range 3 {
		working.Go(func() {
			for minute := range 3 {
				if _, err := p.Sync(t.Context(), fmt.Sprint("user ", user), push(user, minute), inventory.Normal); err != nil {
					t.Error(err)
				}
			}
		})
		working.Go(func() {
			for range 10 {
				if _, err := p.Inspect(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	working.Wait()
	p.inspect()
	got := map[string]int64{}
	for _, phase := range []string{"Ruby", "Sapphire", "Black Pearl", "Phase 1", "Phase 2", "Phase 3", "Phase 4"} {
		got[phase] = p.count(`SELECT count(*) FROM inventory v JOIN item i ON i.id = v.item_id JOIN inspection n ON n.inventory_id = v.id
			WHERE i.phase = $1 AND n.phase = $1 AND n.state = 'done'`, phase)
	}
	want := map[string]int64{}
	for i := range each {
		want[[]string{"Ruby", "Sapphire", "Black Pearl", "Phase 1", "Phase 2", "Phase 3", "Phase 4"}[(i+2)%7]] += 3
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("rows by phase (-want +got):\n%s", d)
	}
}
