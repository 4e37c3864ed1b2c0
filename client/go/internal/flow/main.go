// Command flow runs one task of the end-to-end test with the client. It reads the task from
// standard input and writes JSON values to standard output. client.ts does the same.
package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"time"

	assay "assay/client/go"
	"assay/client/go/api"
)

// task is the input from the test.
type task struct {
	Do, URL, Token string
	Since          int64 // cursor for follow, with its fields
	Fields         *string
	Listing        string            // id of the listing to buy
	Header         map[string]string // of a webhook, with its body and secrets
	Body           string
	Secrets        []string
	Timeout        int // of an attempt, in milliseconds; 0 is the client's own limit
}

func main() {
	var t task
	if err := json.NewDecoder(os.Stdin).Decode(&t); err != nil {
		panic(err)
	}
	o := assay.Options{Token: t.Token}
	if t.Timeout > 0 {
		o.HTTP = &http.Client{Timeout: time.Duration(t.Timeout) * time.Millisecond}
	}
	c, err := assay.New(t.URL, o)
	if err != nil {
		panic(err)
	}
	if err := t.run(c, json.NewEncoder(os.Stdout)); err != nil {
		panic(err)
	}
}

// run does the task.
func (t *task) run(c *assay.Client, out *json.Encoder) error {
	ctx := context.Background()
	switch t.Do {
	case "list":
		for item, err := range c.Items(ctx, api.GetPricesItemsParams{Limit: new(int64(70))}) {
			if err != nil {
				return err
			}
			if err := out.Encode(item); err != nil {
				return err
			}
		}
		return nil
	case "follow":
		for batch, err := range c.Follow(ctx, t.Since, assay.FollowOptions{Fields: t.Fields}) {
			if assay.Temporary(err) {
				continue
			}
			if err != nil {
				return err
			}
			if err := out.Encode(map[string]any{"reset": batch.Reset, "prices": batch.Prices, "cursor": batch.Cursor}); err != nil {
				return err
			}
		}
		return nil
	case "buy":
		bought, err := c.PostListingsIdPurchaseWithResponse(ctx, t.Listing, &api.PostListingsIdPurchaseParams{}, api.PurchaseBody{BuyerId: "buyer"})
		if err != nil {
			return err
		}
		return out.Encode(bought.JSON201)
	default:
		header := http.Header{}
		for name, value := range t.Header {
			header.Set(name, value)
		}
		return out.Encode(assay.VerifyWebhook(header, []byte(t.Body), t.Secrets...) == nil)
	}
}
