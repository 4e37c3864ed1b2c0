package web

// These types group the page handlers by subject.
type (
	runPages      struct{ *pages }
	providerPages struct{ *pages }
	itemPages     struct{ *pages }
	accessPages   struct{ *pages }
	searchPages   struct{ *pages }
	systemPages   struct{ *pages } // events, webhooks and settings
	userPages     struct{ *pages } // users and their inventories
	marketPages   struct{ *pages } // listings, trades and sellers
	moneyPages    struct{ *pages } // ledger and fees
)

// route is a page, or a form if its method is POST.
type route struct {
	pattern string // of http.ServeMux
	least   Role   // minimum role of the session
	handle  sessionHandler
}

// routes returns all pages and forms that need a session. It omits the pages of the market and the
// wallet if these modules are off.
func (s *pages) routes() []route {
	runs, providers, items, access := &runPages{s}, &providerPages{s}, &itemPages{s}, &accessPages{s}
	system, users := &systemPages{s}, &userPages{s}
	list := []route{
		{"GET /{$}", Read, runs.overview},
		{"GET /live", Read, runs.live},
		{"GET /health", Read, s.showHealth},
		{"GET /search", Read, (&searchPages{s}).search},

		{"GET /items", Read, items.items},
		{"GET /item", Read, items.item},
		{"GET /held", Read, items.held},
		{"GET /missing", Read, items.missing},
		{"POST /item/accept", Admin, items.acceptItem},
		{"POST /items/accept", Admin, items.acceptItems},
		{"POST /items/refresh", Admin, items.refreshItems},
		{"POST /held/accept", Admin, items.acceptAll},

		{"GET /runs", Read, runs.runs},
		{"GET /runs/{id}", Read, runs.run},
		{"GET /dry-run", Admin, runs.dryRun},
		{"POST /runs", Admin, runs.start},
		{"POST /runs/{id}/cancel", Admin, runs.cancel},
		{"POST /runs/{id}/retry-failed", Admin, runs.retryFailed},

		{"GET /providers", Read, providers.providers},
		{"GET /providers/{provider}", Read, providers.provider},
		{"POST /providers/{provider}/test", Admin, providers.testProvider},
		{"POST /providers/{provider}/pause", Admin, providers.pauseProvider},
		{"POST /providers/{provider}/resume", Admin, providers.resumeProvider},
		{"POST /providers/{provider}/accept", Admin, providers.acceptProvider},

		{"GET /users", Read, users.users},
		{"GET /users/{id}", Read, users.user},
		{"POST /users/resync", Admin, users.resync},

		{"GET /keys", Admin, access.keys},
		{"GET /audit", Admin, access.audit},
		{"GET /operators", Admin, access.operators},
		{"POST /operators", Admin, access.addOperator},
		{"GET /password", Read, access.password},
		{"POST /password", Read, access.changePassword},
		{"POST /operators/{operator}/role", Admin, access.setRole},
		{"POST /operators/{operator}/password", Admin, access.setPassword},
		{"POST /operators/{operator}/disable", Admin, access.disableOperator},
		{"POST /operators/{operator}/enable", Admin, access.enableOperator},
		{"POST /keys", Admin, access.createKey},
		{"POST /keys/{key}/rotate", Admin, access.rotateKey},
		{"POST /keys/{key}/revoke", Admin, access.revokeKey},

		{"GET /events", Read, system.events},
		{"GET /webhooks", Admin, system.webhooks},
		{"GET /webhooks/{id}", Admin, system.webhook},
		{"POST /webhooks", Admin, system.createWebhook},
		{"POST /webhooks/{id}", Admin, system.changeWebhook},
		{"POST /webhooks/{id}/enable", Admin, system.enableWebhook(true)},
		{"POST /webhooks/{id}/disable", Admin, system.enableWebhook(false)},
		{"POST /webhooks/{id}/rotate", Admin, system.rotateWebhook},
		{"POST /webhooks/{id}/delete", Admin, system.deleteWebhook},
		{"POST /webhooks/{id}/test", Admin, system.testWebhook},
		{"POST /webhooks/{id}/deliveries/{number}/resend", Admin, system.resendDelivery},
		{"GET /settings", Admin, system.settings},
	}
	if !s.PricesOnly {
		list = append(list, s.tradingRoutes()...)
	}
	return list
}

// tradingRoutes returns the pages of the market and the wallet.
func (s *pages) tradingRoutes() []route {
	markets, funds := &marketPages{s}, &moneyPages{s}
	return []route{
		{"GET /listings", Read, markets.listings},
		{"GET /listings/{id}", Read, markets.listing},
		{"GET /trades", Read, markets.trades},
		{"GET /trades/{id}", Read, markets.trade},
		{"POST /trades/{id}/complete", Admin, markets.completeTrade},
		{"POST /trades/{id}/reverse", Admin, markets.reverseTrade},
		{"GET /sellers", Read, markets.sellers},

		{"GET /ledger", Read, funds.ledger},
		{"POST /ledger/verify", Admin, funds.verify},
		{"POST /ledger/verify-all", Admin, funds.verifyAll},
		{"GET /fees", Read, funds.fees},
		{"POST /fees/activate", Admin, funds.activateFees},
		{"POST /fees/rollback", Admin, funds.rollbackFees},
	}
}
