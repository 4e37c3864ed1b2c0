package assay_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	assay "assay/client/go"
	"assay/client/go/api"
)

// server has the responses of a server with one item.
func server() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/prices/items":
			fmt.Fprint(w, `{"items":[{"marketHashName":"AK-47 | Redline (Field-Tested)","currentPriceDecimal":"27.275"}],"nextCursor":null}`)
		case "/api/prices/snapshot.json":
			fmt.Fprint(w, `{"change":"812","items":[{"marketHashName":"AK-47 | Redline (Field-Tested)","currentPriceDecimal":"27.275"}]}`)
		case "/api/prices/changes":
			fmt.Fprint(w, `{"items":[{"change":"830","marketHashName":"AK-47 | Redline (Field-Tested)","currentPriceDecimal":"27.9"}],"next":"830"}`)
		case "/api/listings/7/purchase":
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id":"3","state":"pending"}`)
		}
	}))
}

func ExampleClient_Items() {
	s := server()
	defer s.Close()
	client, err := assay.New(s.URL, assay.Options{Token: "PLATFORM_API_TOKEN"})
	if err != nil {
		panic(err)
	}
	for item, err := range client.Items(context.Background(), api.GetPricesItemsParams{Limit: new(int64(1000))}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(item.MarketHashName, item.CurrentPriceDecimal)
	}
	// Output: AK-47 | Redline (Field-Tested) 27.275
}

func ExampleClient_Follow() {
	s := server()
	defer s.Close()
	client, err := assay.New(s.URL, assay.Options{Token: "PLATFORM_API_TOKEN"})
	if err != nil {
		panic(err)
	}
	stored := int64(0) // read it from your database
	for batch, err := range client.Follow(context.Background(), stored, assay.FollowOptions{}) {
		if assay.Temporary(err) {
			fmt.Println(err)
			continue
		}
		if err != nil {
			panic(err)
		}
		// In one transaction: if batch.Reset, delete your prices; then store the new ones and the cursor.
		fmt.Println(batch.Reset, batch.Prices[0].CurrentPriceDecimal, batch.Cursor)
		if !batch.Reset {
			break
		}
	}
	// Output:
	// true 27.275 812
	// false 27.9 830
}

// The client sends a purchase again after a lost connection, with the same Idempotency-Key. To repeat
// a purchase after a crash of your program, pass your own key, such as the number of your order.
func ExampleNew_purchase() {
	s := server()
	defer s.Close()
	client, err := assay.New(s.URL, assay.Options{Token: "PLATFORM_API_TOKEN"})
	if err != nil {
		panic(err)
	}
	bought, err := client.PostListingsIdPurchaseWithResponse(context.Background(), "7",
		&api.PostListingsIdPurchaseParams{IdempotencyKey: "order-4711"}, api.PurchaseBody{BuyerId: "u2"})
	if err != nil {
		panic(err)
	}
	fmt.Println(bought.JSON201.Id, bought.JSON201.State)
	// Output: 3 pending
}

func ExampleVerifyWebhook() {
	request := httptest.NewRequest(http.MethodPost, "/hooks/assay", strings.NewReader("{}"))
	request.Header.Set("Webhook-Timestamp", "1614265330")
	err := assay.VerifyWebhook(request.Header, []byte("{}"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	fmt.Println(err)
	// Output: the webhook was sent at 2021-02-25T15:02:10Z, more than 5m0s from now: check the clock
}
