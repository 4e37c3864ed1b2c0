package api

import (
	"assay/internal/apikey"
	"assay/internal/event"
	"assay/internal/exchange"
	"assay/internal/inventory"
	"assay/internal/inventory/inspect"
	"assay/internal/market"
	"assay/internal/operator"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/strictjson"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
	"assay/internal/wallet/fee"
	"assay/internal/webhook"
)

// none is the empty value of an enumeration.
const none = ""

// words converts constants of a string type to strings.
func words[T ~string](all ...T) []string {
	list := make([]string, len(all))
	for i, word := range all {
		list[i] = string(word)
	}
	return list
}

// wordLists returns the values of all enumerations in responses and bodies, by the name of
// the schema. docs/reference/statuses-and-reasons.md explains each value.
func wordLists() map[string][]string {
	return map[string][]string{
		"JobKind":  words(refresh.Bulk, refresh.Missing, refresh.Chosen),
		"JobState": words(refresh.Queued, refresh.Running, refresh.Finished, refresh.Failed, refresh.Cancelled),
		"JobStage": words(refresh.StagePlan, refresh.StageFetch, refresh.StageEstimate, refresh.StageApply, refresh.StageDone),
		"ItemState": {
			refresh.ItemPending, refresh.ItemUpdated, refresh.ItemSkipped, refresh.ItemNoQuote, refresh.ItemFailed, refresh.ItemCancelled,
		},
		"SkipReason":    {none, refresh.SkipTTL, refresh.SkipNoSales, refresh.SkipBudget, refresh.SkipPaused, refresh.SkipBackoff},
		"RunningReason": {reasonRunning},
		"DryRunReason":  {reasonDryRun},
		"JobOutcome":    words(refresh.JobComplete, refresh.JobPartial, refresh.JobFailed),
		"GapReason": append([]string{refresh.ItemFailed, refresh.ItemCancelled, refresh.SkipBackoff, refresh.SkipBudget, refresh.SkipPaused},
			words(refresh.OutcomeSilent, refresh.OutcomeQuarantined)...),
		"DeferReason": words(refresh.BoundLimit, refresh.BoundDay, refresh.BoundMonth, refresh.BoundReported, refresh.BoundRetryAfter, refresh.BoundBackground),
		"WorkKind":    {refresh.WorkPlan, "fetch", "background", refresh.WorkEstimate, refresh.WorkApply, refresh.WorkMissing},
		"WorkState":   {"pending", "running", "waiting"},
		"EventKind":   words(event.Kinds()...),

		"WebhookFormat":         words(webhook.Formats()...),
		"WebhookState":          {webhook.IsHealthy, webhook.IsFailing, webhook.IsDisabled},
		"WebhookDisabledReason": {none, webhook.ByOperator, webhook.Gone, webhook.Failing},
		"DeliveryState":         {webhook.Delivered, webhook.Retrying, webhook.Failed, webhook.Lost},
		"DeliveryKind":          append([]string{none}, words(webhook.Kinds()...)...),
		"WebhookEventKind":      words(webhook.Kinds()...),

		"PriceStatus":    view.PriceStatuses(),
		"LookupStatus":   append(view.PriceStatuses(), view.StatusQueued, view.StatusUnknown),
		"EstimateMethod": words(none, pricing.Consensus, pricing.Average, pricing.Median),
		"DecidedBy":      words(none, pricing.ByMajority, pricing.ByLastPrice, pricing.BySize, pricing.ByMarket, pricing.ByLowerPrice),
		"GuardDecision":  append(words(pricing.TakenAtOnce, pricing.HeldBack, pricing.Released), view.DecisionAccepted),
		"GuardWindow":    {none, pricing.SinceLast.String(), pricing.SinceDay.String(), pricing.SinceWeek.String()},
		"ItemClass":      {pricing.Rest.String(), pricing.Star.String()},
		"QuoteBasis":     words(none, pricing.Ask, pricing.Sale),
		"QuoteReason": words(pricing.Used, pricing.NotOffered, pricing.InvalidAmount, pricing.NoRate, pricing.StaleFetch, pricing.StaleMarket,
			pricing.Duplicate, pricing.SharedListings, pricing.Outlier, pricing.LateMarket, pricing.NotConfigured, pricing.Awaiting, pricing.Confirmed),

		"BreakerState":   words(provider.BreakerClosed, provider.BreakerOpen, provider.BreakerHalfOpen),
		"ProviderHealth": words(provider.Healths()...),
		"ProviderShape":  words(provider.Bulk, provider.Batch, provider.Single),
		"QuotaPeriod":    words(provider.Day, provider.Month),
		"RequestError": words(none, provider.KindConnect, provider.KindTimeout, provider.KindCut, provider.KindRateLimited, provider.KindAuth,
			provider.KindServer, provider.KindStatus, provider.KindProtocol, provider.KindTooLarge, provider.KindBlocked, provider.KindBreaker,
			provider.KindBudget, provider.KindQuarantine, provider.KindCancelled),
		"FetchOutcome": words(none, refresh.OutcomeOK, refresh.OutcomeSilent, refresh.OutcomeQuarantined),
		"RateOrigin":   {exchange.ECBName, exchange.FileName, "fixed", "history"},
		"RateSource":   {exchange.ECBName, exchange.FileName, "fixed", "none"},

		"InspectionState":  words(inventory.InspectNone, inventory.InspectPending, inventory.InspectDone, inventory.InspectFailed, inventory.InspectContradiction),
		"InspectionSource": words(inventory.SourceProperty, inventory.SourceLink, inventory.SourcePushed),
		"InspectionCode": append(
			words(inspect.CodeEmpty, inspect.CodeTooLong, inspect.CodeForeign, inspect.CodeTemplate, inspect.CodeOldLink, inspect.CodeNotHex, inspect.CodeOddHex,
				inspect.CodeTooShort, inspect.CodeTruncated, inspect.CodeOverrun, inspect.CodeMalformed, inspect.CodeRange, inspect.CodeText, inspect.CodeTooMany,
				inspect.CodeChecksum),
			inventory.CodeBadProperty, inventory.CodeAssetID, inventory.CodeSeed, inventory.CodeWear, inventory.CodeNameTag, inventory.CodeLink,
			inventory.CodePhase, inventory.CodeFinish),

		"ListingState":     words(market.Active, market.Reserved, market.Sold, market.Cancelled, market.Expired),
		"TradeState":       words(market.Pending, market.Completed, market.Reversed, market.Settled),
		"PriceCheckStatus": {"known", "queued"},

		"PostingKind":     words(wallet.KindDeposit, wallet.KindWithdrawal, wallet.KindCorrection),
		"TransactionKind": words(wallet.KindDeposit, wallet.KindWithdrawal, wallet.KindCorrection, wallet.KindReversal, wallet.KindSale, wallet.KindCompletion, wallet.KindSettlement),
		"EntryType": words(wallet.TypeDeposit, wallet.TypeWithdrawal, wallet.TypeCorrection, wallet.TypeReversal, wallet.TypeRelease, wallet.TypeFree,
			wallet.TypePurchase, wallet.TypeSale, wallet.TypeSaleReversal, wallet.TypeFee, wallet.TypeCompletion),
		"VerificationStatus": words(audit.OK, audit.Failed, audit.Incomplete),
		"CheckStatus":        words(audit.Pass, audit.Fail, audit.Skipped, audit.NotApplicable),
		"CheckName":          audit.Names(),

		"PaymentKind": words(fee.Sale, fee.Deposit, fee.Withdrawal),
		"FeeBasis":    words(fee.Gross, fee.Net),
		"FeeRounding": words(fee.HalfEven, fee.HalfUp, fee.Up, fee.Down),

		"KeyScope":     apikey.Scopes(),
		"OperatorRole": {operator.Read.String(), operator.Admin.String()},
		"HealthStatus": {"ok", "failing"},
		"ProblemCode":  problemCodes(),
		"FieldCode": {
			strictjson.WrongType, strictjson.OutOfRange, strictjson.InvalidText, strictjson.Required, strictjson.UnknownMember, strictjson.DuplicateMember,
			strictjson.Malformed, fee.TooLarge, fee.TooMany, fee.UnknownValue, fee.UnknownCurrency, fee.UnknownCountry, fee.DuplicateValue, fee.DuplicateID,
			fee.ReservedID, fee.InvalidName, fee.NeedsCurrency, fee.MinAboveMax, fee.EmptyRange, fee.EmptyPeriod, fee.TiersAndRate, fee.TierGap,
			fee.TierOverlap, fee.TierNotOpen, fee.TierOpen, fee.AmbiguousRules, "large_change",
		},
	}
}
