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

// earliest is the earliest valid time of an inventory. Steam had no inventories before it.
// The check rejects zero times and times with a wrong unit.
var earliest = time.Date(2003, 1, 1, 0, 0, 0, 0, time.UTC)

// DecodePush decodes the body of a push. The caller must limit the size of r. The error is a
// fault of kind Invalid with all invalid members, a fault of kind TooLarge for more than
// MaxItems items, or an error of r.
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

// ReadPush decodes a push at a JSON pointer of a larger document. The push is an object or
// only the array of its items. It may omit the game and the context. If it omits
// snapshotAt, its time is now. If it has a game or context, the caller must compare them
// with the values in the document.
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

// pushDecoder decodes a push.
type pushDecoder struct {
	in    *strictjson.Reader
	at    string // JSON pointer of the push
	list  string // JSON pointer of its items
	now   time.Time
	push  Push
	first map[string]int // index of the first item with an asset id
}

// members reads the members of a push and returns their names.
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
		d.in.Fault("is the same as %s/%d/assetId: asset ids must be unique", d.list, first)
		return
	}
	d.first[id] = i
	a.AssetID = id
}

// name reads a market hash name. The result found is false if the name is empty or null,
// which is valid only for assets that are not marketable.
func (d *pushDecoder) name() (name string, found bool) {
	if d.in.Null() {
		return "", false
	}
	name, ok := d.in.Text(0, catalog.MaxName)
	if !ok || name == "" {
		return "", !ok // an invalid name has already been reported
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

// text reads a string that may be empty. It returns "" for null.
func (d *pushDecoder) text(maxBytes int) string {
	if d.in.Null() {
		return ""
	}
	text, _ := d.in.Text(0, maxBytes)
	return text
}
