package inventory

import (
	"io"
	"math"
	"strconv"
	"time"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/strictjson"
)

// Names of the members of a push and of its items.
var (
	pushMembers  = []string{"appId", "contextId", "snapshotAt", "items"}
	assetMembers = []string{
		"assetId", "marketHashName", "phase", "classId", "instanceId",
		"amount", "tradable", "marketable", "inspect",
	}
)

// earliest is the first moment of which an inventory can be: Steam had none
// before. It keeps out zero times and seconds taken for years.
var earliest = time.Date(2003, 1, 1, 0, 0, 0, 0, time.UTC)

// DecodePush reads a push as a client sends it; r bounds its size. An error is a fault of kind Invalid that names each wrong member,
// of kind TooLarge for more than MaxItems, or what r returned.
func DecodePush(r io.Reader, now time.Time) (Push, error) {
	d := pushDecoder{in: strictjson.NewReader(r), now: now, first: make(map[string]int)}
	had := d.members()
	for _, name := range pushMembers {
		d.in.Require("", name, had[name])
	}
	if err := d.in.Finish(); err != nil {
		return Push{}, err
	}
	return d.push, nil
}

// ReadPush reads a push within a larger document, where pointer names it, of the
// game and context of the document: a push that may leave out
// both and its moment, which then is now, or only a list of its items. The caller compares
// its AppID and ContextID, if it has any, with those of the document.
func ReadPush(in *strictjson.Reader, pointer string, now time.Time) Push {
	d := pushDecoder{in: in, at: pointer, now: now, first: make(map[string]int)}
	d.push.SnapshotAt = now.UTC().Truncate(time.Microsecond)
	if in.NextIsArray() {
		d.list = pointer
		in.Array(d.asset)
		return d.push
	}
	in.Require(pointer, "items", d.members()["items"])
	return d.push
}

// pushDecoder is a push while it is read.
type pushDecoder struct {
	in    *strictjson.Reader
	at    string // pointer of the push
	list  string // pointer of its items
	now   time.Time
	push  Push
	first map[string]int // where each asset id was first
}

// members reads the members of a push, and returns which there were.
func (d *pushDecoder) members() map[string]bool {
	had := map[string]bool{}
	d.list = d.at + "/items"
	d.in.Object(pushMembers, func(member string) bool {
		had[member] = true
		switch member {
		case "appId":
			app, _ := d.in.Int(1, math.MaxInt32)
			d.push.AppID = int32(app)
		case "contextId":
			d.push.ContextID, _ = d.in.Text(1, MaxOpaque)
		case "snapshotAt":
			d.snapshotAt()
		case "items":
			d.in.Array(d.asset)
		default:
			return false
		}
		return true
	})
	return had
}

func (d *pushDecoder) snapshotAt() {
	at, ok := d.in.Time()
	switch {
	case !ok:
	case at.After(d.now.Add(MaxAhead)):
		d.in.Fault("is more than %d minutes ahead of this server's clock (%s)",
			int(MaxAhead.Minutes()), d.now.UTC().Format(time.RFC3339))
	case at.Before(earliest):
		d.in.Fault("must not be before %d", earliest.Year())
	default:
		d.push.SnapshotAt = at
	}
}

// asset reads the item at index i.
func (d *pushDecoder) asset(i int) {
	if i == MaxItems {
		d.in.Stop(fault.New(fault.TooLarge, "too_many_items", "An inventory can hold at most %d items.", MaxItems))
		return
	}
	a := Asset{Amount: 1, Tradable: true, Marketable: true}
	var hasID, hasName bool
	read := d.in.Object(assetMembers, func(member string) bool {
		switch member {
		case "assetId":
			hasID = true
			d.assetID(&a, i)
		case "marketHashName":
			a.Name, hasName = d.name()
		case "phase":
			a.Phase = d.phase()
		case "classId":
			a.ClassID = d.text(MaxOpaque)
		case "instanceId":
			a.InstanceID = d.text(MaxOpaque)
		case "inspect":
			a.Inspect = d.text(MaxInspect)
		case "amount":
			a.Amount, _ = d.in.Int(1, math.MaxInt32)
		case "tradable":
			a.Tradable, _ = d.in.Bool()
		case "marketable":
			a.Marketable, _ = d.in.Bool()
		default:
			return false
		}
		return true
	})
	if !read {
		return
	}
	at := d.list + "/" + strconv.Itoa(i)
	d.in.Require(at, "assetId", hasID)
	if !hasName && a.Marketable {
		d.in.FaultAt(at+"/marketHashName", `is required, unless "marketable" is false`)
	}
	d.push.Assets = append(d.push.Assets, a)
}

func (d *pushDecoder) assetID(a *Asset, i int) {
	id, ok := d.in.Text(1, MaxOpaque)
	if !ok {
		return
	}
	if first, again := d.first[id]; again {
		d.in.Fault("is the same as %s/%d/assetId: an asset can be in an inventory once", d.list, first)
		return
	}
	d.first[id] = i
	a.AssetID = id
}

// name reads a market hash name; there is false for an empty one, which only
// what is not marketable can have.
func (d *pushDecoder) name() (name string, there bool) {
	if d.in.Null() {
		return "", false
	}
	name, ok := d.in.Text(0, catalog.MaxName)
	if !ok || name == "" {
		return "", !ok // a wrong one is a fault already
	}
	if err := catalog.CheckName(name); err != nil {
		d.in.Fault("%v", err)
	}
	return name, true
}

func (d *pushDecoder) phase() string {
	phase := d.text(MaxOpaque)
	if err := catalog.CheckPhase(phase); err != nil {
		d.in.Fault("%v", err)
		return ""
	}
	return phase
}

// text reads a string that may be empty; null is as good as absent.
func (d *pushDecoder) text(maxBytes int) string {
	if d.in.Null() {
		return ""
	}
	text, _ := d.in.Text(0, maxBytes)
	return text
}
