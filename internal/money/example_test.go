package money_test

import (
	"encoding/json"
	"fmt"

	"assay/internal/money"
)

// Parse returns an exact amount for every notation of a JSON number.
func ExampleParse() {
	units, _ := money.Parse([]byte("12.345"), 1)
	cents, _ := money.Parse([]byte("1234.5"), 100)
	tiny, _ := money.Parse([]byte("1e-6"), 1)
	_, err := money.Parse([]byte("1,234.50"), 1)
	fmt.Println(units, cents, tiny, err)
	fmt.Println(int64(units), "millionths")
	// Output:
	// 12.345 12.345 0.000001 not a decimal number
	// 12345000 millionths
}

// Payments are in minor units: cents for dollars, whole units for yen.
func ExampleCurrency_FromMinor() {
	for _, c := range []money.Currency{"USD", "JPY", "KWD"} {
		fmt.Println(c, c.FromMinor(12345))
	}
	// Output:
	// USD 123.45
	// JPY 12345
	// KWD 12.345
}

// The prices of a euro in dollars and in yuan give the price of a yuan in dollars.
func ExampleConvert() {
	dollars, _ := money.ParseRate([]byte("1.0834")) // dollars per euro
	yuan, _ := money.ParseRate([]byte("7.7312"))    // yuan per euro
	rate, _ := money.CrossRate(dollars, yuan)
	price, _ := money.Convert(100*money.Scale, rate)
	fmt.Println("one yuan costs", rate, "dollars")
	fmt.Println("100 yuan cost", price)
	// Output:
	// one yuan costs 0.140133485099 dollars
	// 100 yuan cost 14.013349
}

// Ratio and Div round half to even. The unit of a ratio is a millionth.
func ExampleRatio() {
	third, _ := money.Ratio(1, 3)
	_, ok := money.Ratio(1, 0)
	fmt.Println(third, ok, money.Div(5, 2), money.Div(7, 2))
	// Output: 0.333333 false 0.000002 0.000004
}

// A Sum is exact beyond the largest Micro.
func ExampleSum_Add() {
	var total money.Sum
	total = total.Add(9_000_000_000_000*money.Scale, 1_000_000).Add(1, 1)
	text, _ := json.Marshal(total)
	fmt.Println(string(text))
	// Output: 9000000000000000000.000001
}

// Decimal encodes an amount as a JSON string, for clients that decode JSON numbers as
// binary floating point.
func ExampleDecimal() {
	text, _ := json.Marshal(map[string]any{"number": money.Micro(12_345_000), "text": money.Decimal(12_345_000)})
	fmt.Println(string(text))
	// Output: {"number":12.345,"text":"12.345"}
}
