package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/config"
	"assay/internal/view"
)

// inventoryCmd contains the commands for a user's inventory.
type inventoryCmd struct {
	Sync inventorySyncCmd `cmd:"" help:"Push a user's whole inventory of one game from a JSON file, or make the server read it from Steam."`
	Show inventoryShowCmd `cmd:"" help:"Show a user's inventory and its value."`
}

// inventorySyncCmd pushes an inventory, or makes the server read it from Steam.
type inventorySyncCmd struct {
	User    string `arg:"" complete:"user" help:"The platform's ID of the user."`
	File    string `placeholder:"FILE" help:"JSON with appId, contextId, snapshotAt and items. - means standard input."`
	Steam   bool   `help:"Make the server read the user's public inventory from Steam. The user must have a Steam ID."`
	AppID   int32  `complete:"game" placeholder:"ID" help:"With --steam: the game, by its Steam app ID: 730, 570, 440 or 252490. Default: 730."`
	Context string `placeholder:"ID" help:"With --steam: the context: 2, or 16 for trade-protected items of 730. Default: 2."`
}

func (*inventorySyncCmd) examples() []example {
	return []example{
		{"inventory sync u1 --file u1.json", "push the inventory in u1.json; an unknown user is created"},
		{"inventory sync u1 --file - --json", "push an inventory from standard input and print the changes as JSON"},
		{"inventory sync u1 --steam", "read u1's CS2 inventory from Steam; takes a few seconds per 2,000 assets"},
		{"inventory sync u1 --steam --app-id 570", "read u1's inventory of Dota 2"},
	}
}

func (c *inventorySyncCmd) Run(ctx context.Context, s *session) error {
	if c.Steam == (c.File != "") || !c.Steam && (c.AppID != 0 || c.Context != "") {
		return &usageError{text: "use either --file or --steam; --app-id and --context need --steam"}
	}
	r := syncRequest(c.User, nil)
	if c.Steam {
		r.query = filter("source", "steam", "appId", unlessZero(c.AppID), "contextId", c.Context)
	} else {
		push, err := c.read(s.Stdin)
		if err != nil {
			return err
		}
		r.body = push
	}
	return show(ctx, s, r, func(w io.Writer, done *view.SyncResult) {
		_, _ = fmt.Fprintf(w, "%s added, %s removed, %s changed, %s unchanged\n",
			count(done.Added), count(done.Removed), count(done.Changed), count(done.Unchanged))
		_, _ = fmt.Fprintf(w, "%s rows have a price, %s names without a price were queued\n", count(done.PricedRows), count(done.QueuedNames))
	})
}

// read returns the content of the file. It checks that the content is JSON, so that the error
// can name the file. The server validates the rest.
func (c *inventorySyncCmd) read(stdin io.Reader) ([]byte, error) {
	from, name := stdin, "standard input"
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return nil, usageOfFile(err)
		}
		defer f.Close()
		from, name = f, c.File
	}
	push, err := io.ReadAll(io.LimitReader(from, maxPush+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(push) > maxPush:
		return nil, &usageError{text: fmt.Sprintf("%s is larger than the limit of the server, %d MiB", name, maxPush>>20)}
	case !jsontext.Value(push).IsValid():
		return nil, &usageError{text: name + " does not contain JSON"}
	}
	return push, nil
}

// usageOfFile converts an error about a file from the command line to a usageError. If the output
// file already exists, it returns a conflict instead.
func usageOfFile(err error) error {
	path, ok := errors.AsType[*os.PathError](err)
	switch {
	case ok && errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s: %w: use another file name or remove the file", path.Path, fs.ErrExist)
	case ok:
		return &usageError{text: path.Path + ": " + path.Err.Error()}
	}
	return err
}

// inventoryShowCmd shows an inventory.
type inventoryShowCmd struct {
	User  string `arg:"" complete:"user" help:"The platform's ID of the user."`
	AppID int32  `complete:"game" placeholder:"ID" help:"Only this game, by its Steam app ID."`
}

func (*inventoryShowCmd) examples() []example {
	return []example{
		{"inventory show u1", "list the assets of u1 with their value"},
		{"inventory show u1 --app-id 730 --json", "print the inventory of one game as JSON"},
	}
}

func (c *inventoryShowCmd) Run(ctx context.Context, s *session) error {
	api, err := s.server()
	if err != nil {
		return err
	}
	inv, err := c.read(ctx, api)
	if err != nil {
		return err
	}
	return s.out.result(inv, func(w io.Writer) { writeInventory(w, &inv) })
}

// read returns all pages of the inventory.
func (c *inventoryShowCmd) read(ctx context.Context, api *client) (view.Inventory, error) {
	r := request{
		path: "/api/inventory/" + segment(c.User), as: config.RolePlatform,
		query: filter("limit", strconv.Itoa(pageSize), "fields", allFields(), "appId", unlessZero(c.AppID)),
	}
	var items []view.InventoryRow
	for {
		page, err := call[view.Inventory](ctx, api, r)
		if err != nil {
			return view.Inventory{}, err
		}
		items = append(items, page.Items...)
		if page.NextCursor == nil {
			page.Items = items
			return page, nil
		}
		r.query.Set("cursor", *page.NextCursor)
	}
}

func writeInventory(w io.Writer, inv *view.Inventory) {
	_, _ = fmt.Fprintf(w, "%s worth %s %s, %s of them without a price\n",
		plural(inv.Rows, "row", "rows"), inv.TotalValue, inv.Currency, count(inv.UnpricedRows))
	if len(inv.Items) == 0 {
		return
	}
	rows := [][]string{{"ASSET", "GAME", "NAME", "PHASE", "AMOUNT", "VALUE", "STATUS", "INTERVAL", "PRICED"}}
	for _, it := range inv.Items {
		priced := "-"
		if it.PriceUpdatedAt != nil {
			priced = moment(it.PriceUpdatedAt)
		}
		rows = append(rows, []string{
			cell(it.AssetID), fmt.Sprint(it.AppID), nameText(it.MarketHashName), phaseText(it.Phase, it.PhaseUnknown),
			count(it.Amount), amount(it.EstimatedValue), it.PriceStatus, intervalText(it.Figures), priced,
		})
	}
	table(w, rows)
}

func nameText(name string) string {
	if name == "" {
		return "(not marketable)"
	}
	return cell(name)
}

func phaseText(phase string, unknown bool) string {
	switch {
	case unknown:
		return "unknown"
	case phase == "":
		return "-"
	default:
		return phase
	}
}
