package steam

import "assay/internal/money"

// dollars is the requested currency.
const dollars = money.Currency("USD")

// tender is a currency with Steam's number and notation.
type tender struct {
	id      int
	code    money.Currency
	signs   []string // before or after an amount
	decimal byte     // decimal separator
}

// tenders are the currencies with a known number. Signs and separators are those of Steam's
// pages, in any language.
var tenders = [...]tender{
	{1, "USD", []string{"$", "$USD", "USD"}, '.'},
	{2, "GBP", []string{"£", "GBP"}, '.'},
	{3, "EUR", []string{"€", "EUR"}, ','},
	{4, "CHF", []string{"CHF"}, '.'},
	{5, "RUB", []string{"pуб.", "руб.", "₽", "RUB"}, ','}, // the first begins with a Latin p
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
