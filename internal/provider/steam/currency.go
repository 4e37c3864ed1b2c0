package steam

import "assay/internal/money"

// dollars is the currency of all requests.
const dollars = money.Currency("USD")

// currencyFormat is the notation of a currency on Steam's pages.
type currencyFormat struct {
	id      int // Steam's number of the currency
	code    money.Currency
	signs   []string // signs before or after an amount
	decimal byte     // decimal separator
}

// formats are the supported currencies. Steam's pages use these signs in all languages.
var formats = [...]currencyFormat{
	{1, "USD", []string{"$", "$USD", "USD"}, '.'},
	{2, "GBP", []string{"£", "GBP"}, '.'},
	{3, "EUR", []string{"€", "EUR"}, ','},
	{4, "CHF", []string{"CHF"}, '.'},
	{5, "RUB", []string{"pуб.", "руб.", "₽", "RUB"}, ','}, // the first sign has a Latin p
	{6, "PLN", []string{"zł", "PLN"}, ','},
	{7, "BRL", []string{"R$", "BRL"}, ','},
	{8, "JPY", []string{"¥", "JPY"}, '.'},
	{9, "NOK", []string{"NOK"}, ','},
	{10, "IDR", []string{"Rp", "IDR"}, '.'},
	{18, "UAH", []string{"₴", "UAH"}, ','},
	{20, "CAD", []string{"CDN$", "CAD"}, '.'},
	{21, "AUD", []string{"A$", "AUD"}, '.'},
	{23, "CNY", []string{"¥", "元", "CNY"}, '.'},
	{24, "INR", []string{"₹", "INR"}, '.'},
	{37, "KZT", []string{"₸", "KZT"}, ','},
}
