// Command client uses the main operations of a running server's API. It uses a client that
// oapi-codegen generates from the server's OpenAPI document. The tests put the generated
// api.gen.go next to this file. The command reads the server's address and the expected prices
// from standard input. It exits with 1 at the first unexpected result.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	_ "github.com/oapi-codegen/runtime" // api.gen.go imports this
)

// task is the input from the tests.
type task struct {
	URL, Token string
	Prices     map[string]string // exact decimal prices by name
}

func main() {
	var t task
	if err := json.NewDecoder(os.Stdin).Decode(&t); err != nil {
		fail("the task", err)
	}
	api, err := NewClientWithResponses(t.URL, WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+t.Token)
		return nil
	}))
	if err != nil {
		fail("the client", err)
	}
	f := flow{api: api, ctx: context.Background(), prices: t.Prices}
	for name := range t.Prices {
		f.names = append(f.names, name)
	}
	f.price()
	f.digits()
	f.sell()
	f.leave()
	fmt.Printf("%d prices are the same to the digit\n", len(f.names))
}

func fail(what string, got any) {
	fmt.Fprintf(os.Stderr, "%s: %+v\n", what, got)
	os.Exit(1)
}

// must returns the decoded response. It exits if there is none.
func must[T any](value *T, body []byte, err error) T {
	if err != nil || value == nil {
		fail(fmt.Sprintf("%T: %s", *new(T), body), err)
	}
	return *value
}

func check(what string, ok bool, got any) {
	if !ok {
		fail(what, got)
	}
}

type flow struct {
	api    *ClientWithResponses
	ctx    context.Context //nolint:containedctx // context of the whole program
	prices map[string]string
	names  []string
}

// price pushes an inventory with every name and refreshes the prices.
func (f *flow) price() {
	items := make([]PushItem, len(f.names))
	for i := range f.names {
		items[i] = PushItem{AssetId: strconv.Itoa(i), MarketHashName: &f.names[i]}
	}
	push := PushBody{AppId: 730, ContextId: "2", SnapshotAt: time.Now(), Items: items}
	synced, err := f.api.PostInventoryUserIdSyncWithResponse(f.ctx, "seller", nil, push)
	if got := must(synced.JSON200, synced.Body, err); got.Added != int64(len(items)) {
		fail("a push", got)
	}
	dry, yes := PostMarketPricesRefreshParamsDryRun("1"), PostMarketPricesRefreshParamsForce("1")
	forecast, err := f.api.PostMarketPricesRefreshWithResponse(f.ctx, &PostMarketPricesRefreshParams{DryRun: &dry, Force: &yes})
	union := must(forecast.JSON200, forecast.Body, err)
	alternative, err := union.ValueByDiscriminator()
	response, ok := alternative.(DryRunResponse)
	check("a dry run", ok && !response.Started && response.DueItems == int64(len(items)), fmt.Sprint(alternative, err))

	started, err := f.api.PostMarketPricesRefreshWithResponse(f.ctx, &PostMarketPricesRefreshParams{Force: &yes})
	job := must(started.JSON202, started.Body, err).Job
	check("Location", started.Headers202.Location == "/api/market-prices/jobs/"+job.Id, started.Headers202)
	for {
		status, err := f.api.GetMarketPricesStatusWithResponse(f.ctx)
		if now := must(status.JSON200, status.Body, err); !now.Status.Running {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	ended, err := f.api.GetMarketPricesJobsIdWithResponse(f.ctx, job.Id)
	got := must(ended.JSON200, ended.Body, err)
	check("the job", got.State == JobStateFinished && got.UpdatedItems == int64(len(items)), got)
}

// digits looks up all prices and compares all their digits.
func (f *flow) digits() {
	for rest := f.names; len(rest) > 0; {
		n := min(1000, len(rest))
		var keys []LookupKey
		for _, name := range rest[:n] {
			keys = append(keys, LookupKey{MarketHashName: name})
		}
		rest = rest[n:]
		found, err := f.api.PostPricesLookupWithResponse(f.ctx, &PostPricesLookupParams{}, LookupBody{Items: keys})
		for _, item := range must(found.JSON200, found.Body, err).Items {
			want := f.prices[item.MarketHashName]
			if got := strconv.FormatFloat(item.CurrentPrice, 'f', -1, 64); got != want || item.CurrentPriceDecimal != want {
				fail("digits of "+item.MarketHashName, got+", "+item.CurrentPriceDecimal+", want "+want)
			}
		}
	}
	dash := "-"
	explained, err := f.api.GetPricesItemsNameWithResponse(f.ctx, dash, &GetPricesItemsNameParams{Name: &f.names[0]})
	got := must(explained.JSON200, explained.Body, err)
	check("an explanation", got.CurrentPriceDecimal == f.prices[f.names[0]] && len(got.Snapshots) == 1 && got.Snapshots[0].Used, got)
	listed, err := f.api.GetPricesItemsWithResponse(f.ctx, nil)
	check("a page", len(must(listed.JSON200, listed.Body, err).Items) == min(100, len(f.names)), string(listed.Body))
}

// sell lists an asset, buys it and completes the trade.
func (f *flow) sell() {
	name, usd, amount := "Go", "USD", int64(10_000)
	user, err := f.api.PutUsersUserIdWithResponse(f.ctx, "buyer", UserBody{DisplayName: &name})
	check("the user", *must(user.JSON200, user.Body, err).DisplayName == name, string(user.Body))
	deposit := EntryBody{Kind: PostingKindDeposit, Currency: &usd, Amount: &amount}
	posted, err := f.api.PostFunctionsAdminWalletLedgerUserIdEntriesWithResponse(f.ctx, "buyer",
		&PostFunctionsAdminWalletLedgerUserIdEntriesParams{IdempotencyKey: "deposit"}, deposit)
	check("the deposit", must(posted.JSON201, posted.Body, err).Balance.Available == amount, string(posted.Body))
	quoted, err := f.api.PostFunctionsAdminPaymentFeeRulesQuoteWithResponse(f.ctx, QuoteBody{Kind: PaymentKindSale, Amount: 2725, Currency: usd})
	fee := must(quoted.JSON200, quoted.Body, err).Fee

	offer := ListingBody{UserId: "seller", AppId: 730, ContextId: "2", AssetId: "0", Price: 2725, Currency: usd}
	made, err := f.api.PostListingsWithResponse(f.ctx, nil, offer)
	listing := must(made.JSON201, made.Body, err)
	check("the listing", listing.Listing.State == ListingStateActive && *listing.PriceCheck.ValueDecimal == f.prices[f.names[0]], listing)
	again, err := f.api.PostListingsWithResponse(f.ctx, nil, offer)
	check("a second listing", must(again.ApplicationproblemJSON409, again.Body, err).Code == ProblemCodeAlreadyListed, string(again.Body))

	bought, err := f.api.PostListingsIdPurchaseWithResponse(f.ctx, listing.Listing.Id, &PostListingsIdPurchaseParams{IdempotencyKey: "buy"}, PurchaseBody{BuyerId: "buyer"})
	trade := must(bought.JSON201, bought.Body, err)
	check("the purchase", trade.Fee == fee && trade.Net == 2725-fee && trade.State == TradeStatePending, trade)
	completed, err := f.api.PostTradesIdCompleteWithResponse(f.ctx, trade.Id)
	check("the trade", must(completed.JSON200, completed.Body, err).State == TradeStateCompleted, string(completed.Body))

	balance, err := f.api.GetFunctionsAdminWalletLedgerUserIdBalanceWithResponse(f.ctx, "buyer")
	check("the balance", must(balance.JSON200, balance.Body, err).Accounts[0].Balance == amount-2725, string(balance.Body))
	entries, err := f.api.GetFunctionsAdminWalletLedgerUserIdEntriesWithResponse(f.ctx, "buyer", nil)
	for _, e := range must(entries.JSON200, entries.Body, err).Items {
		check("the type of an entry", e.Type.Valid(), e)
	}
	verified, err := f.api.GetFunctionsAdminWalletLedgerUserIdVerifyWithResponse(f.ctx, "seller", nil)
	report := must(verified.JSON200, verified.Body, err)
	check("the verification", report.Ok && report.Status == VerificationStatusOk && len(report.Checks) > 20, report)
}

// leave deletes a user. A user with an open trade cannot be deleted.
func (f *flow) leave() {
	refused, err := f.api.DeleteUsersUserIdWithResponse(f.ctx, "buyer")
	check("a refused deletion", must(refused.ApplicationproblemJSON409, refused.Body, err).Code == ProblemCodeUserHasTrades, string(refused.Body))
	put, err := f.api.PutUsersUserIdWithResponse(f.ctx, "gone", UserBody{})
	must(put.JSON200, put.Body, err)
	deleted, err := f.api.DeleteUsersUserIdWithResponse(f.ctx, "gone")
	check("a deletion", err == nil && deleted.StatusCode() == 204, err)
	found, err := f.api.GetUsersUserIdWithResponse(f.ctx, "gone")
	check("a deleted user", must(found.ApplicationproblemJSON404, found.Body, err).Code == ProblemCodeUserNotFound, string(found.Body))
}
