package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// maxDuration is the maximum of every configured duration. It prevents overflows in sums of
// durations.
const maxDuration = 8760 * time.Hour

// setter parses the value of a setting and stores it in a configuration. Its error message
// continues a sentence that begins with the name of the setting. The message never contains a secret.
type setter func(*Config, string) error

// into returns a setter that parses a value and stores it in a field.
func into[T any](field func(*Config) *T, parse func(string) (T, error)) setter {
	return func(c *Config, value string) (err error) {
		*field(c), err = parse(value)
		return err
	}
}

// intoProvider returns a setter for a field of a provider's settings.
func intoProvider[T any](provider string, field func(*Provider) *T, parse func(string) (T, error)) setter {
	return func(c *Config, value string) (err error) {
		p := c.Provider[provider]
		*field(&p), err = parse(value)
		c.Provider[provider] = p
		return err
	}
}

func text(field func(*Config) *string) setter {
	return into(field, func(value string) (string, error) { return value, nil })
}

func oneOf[T ~string](field func(*Config) *T, allowed ...T) setter {
	return into(field, func(value string) (T, error) {
		if slices.Contains(allowed, T(value)) {
			return T(value), nil
		}
		words := make([]string, len(allowed))
		for i, word := range allowed {
			words[i] = string(word)
		}
		return "", fmt.Errorf("%q is unknown; want %s", value, orList(words))
	})
}

func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func duration(field func(*Config) *time.Duration, least, most time.Duration) setter {
	return into(field, func(value string) (time.Duration, error) {
		d, err := time.ParseDuration(value)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration; write it like 30m or 6h, days as hours (168h)", value)
		}
		if d < least || d > most {
			return 0, fmt.Errorf("%q is out of range; want %s to %s", value, shortDuration(least), shortDuration(most))
		}
		return d, nil
	})
}

const (
	mostRequests = 1_000_000     // maximum requests of a limit
	mostInQuota  = 1_000_000_000 // maximum requests of a quota
	mostMarkets  = 64            // maximum markets of one provider
)

func parseLimit(value string) (Limit, error) {
	count, period, _ := strings.Cut(value, "/")
	n, err := strconv.Atoi(count)
	per, perErr := time.ParseDuration(period)
	if err != nil || perErr != nil || n < 1 || n > mostRequests || per < time.Millisecond || per > maxDuration {
		return Limit{}, fmt.Errorf("%q is not a limit; write requests and a period like 8/5m", value)
	}
	return Limit{Requests: n, Per: per}, nil
}

func parseQuota(value string) (q Quota, err error) {
	for part := range strings.SplitSeq(value, ",") {
		count, period, _ := strings.Cut(strings.TrimSpace(part), "/")
		of := map[string]*int64{"day": &q.Day, "month": &q.Month}[period]
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil || n < 1 || n > mostInQuota || of == nil || *of != 0 {
			return q, fmt.Errorf("%q is not a quota; use requests per day, per month or both, such as 1000/day,30000/month", value)
		}
		*of = n
	}
	return q, nil
}

func markets(provider string) setter {
	return intoProvider(provider, func(p *Provider) *[]string { return &p.Markets }, parseMarkets)
}

func parseMarkets(value string) ([]string, error) {
	keys := splitList(value)
	for i, key := range keys {
		if !marketKey.MatchString(key) {
			return nil, fmt.Errorf("%q is not the key of a market; use a comma-separated list such as skinport,csfloat", key)
		}
		if slices.Contains(keys[:i], key) {
			return nil, fmt.Errorf("%q occurs twice; remove one", key)
		}
	}
	if len(keys) > mostMarkets {
		return nil, fmt.Errorf("%d markets are too many; name at most %d", len(keys), mostMarkets)
	}
	return keys, nil
}

var marketKey = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// shortDuration formats a duration without zero parts: 72h0m0s becomes 72h.
func shortDuration(d time.Duration) string {
	s := strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
	if s == "" {
		return "0s"
	}
	return s
}

func number(field func(*Config) *int, least, most int) setter {
	return into(field, func(value string) (int, error) { return wholeNumber(value, least, most) })
}

func wholeNumber(value string, least, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q is not a whole number from %d to %d", value, least, most)
	}
	return n, nil
}

func parseDays(value string) (time.Duration, error) {
	days, err := wholeNumber(value, 0, 36_500)
	return time.Duration(days) * 24 * time.Hour, err
}

// parseHistory accepts 31 days or more, because the estimate compares prices of the last weeks.
func parseHistory(value string) (time.Duration, error) {
	days, err := wholeNumber(value, 31, 36_500)
	return time.Duration(days) * 24 * time.Hour, err
}

func parseAddress(value string) (string, error) {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return "", fmt.Errorf("%q is not an address; write host:port, such as 127.0.0.1:8080 or [::1]:8080", value)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q has no port from 0 to 65535; write host:port", value)
	}
	return value, nil
}

func parseNetworks(value string) (all []netip.Prefix, err error) {
	for _, item := range splitList(value) {
		network, err := netip.ParsePrefix(item)
		if err != nil {
			addr, err := netip.ParseAddr(item)
			if err != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("%q is neither an address nor a network; write 10.0.0.7 or 10.0.0.0/8", item)
			}
			network = netip.PrefixFrom(addr, addr.BitLen())
		}
		all = append(all, network.Masked())
	}
	return all, nil
}

func parseLogLevel(value string) (level slog.Level, err error) {
	levels := []string{"debug", "info", "warn", "error"}
	if !slices.Contains(levels, value) {
		return level, fmt.Errorf("%q is unknown; want %s", value, orList(levels))
	}
	err = level.UnmarshalText([]byte(value))
	return level, err
}

// providerList returns a parser for a list of provider names.
func providerList(known []string) func(string) ([]string, error) {
	return func(value string) (names []string, err error) {
		if value == "none" {
			return nil, nil
		}
		var unknown, faults []string
		for _, name := range splitList(value) {
			switch {
			case !slices.Contains(known, name):
				unknown = append(unknown, strconv.Quote(name)+" is not a price provider")
			case !slices.Contains(names, name):
				names = append(names, name)
			case !slices.Contains(faults, name+" occurs twice; remove one"):
				faults = append(faults, name+" occurs twice; remove one")
			}
		}
		faults = append(faults, slices.Compact(unknown)...)
		if len(unknown) > 0 {
			faults = append(faults, "want "+orList(known))
		}
		if len(faults) > 0 {
			err = errors.New(strings.Join(faults, "; "))
		}
		return names, err
	}
}

func parseCurrency(value string) (money.Currency, error) {
	c, err := money.ParseCurrency(value)
	if err == nil && !c.Circulates() {
		err = fmt.Errorf("%s is not an ISO 4217 currency in circulation; write one such as USD or EUR", c)
	}
	return c, err
}

// setRates parses the source of exchange rates and the fixed rates.
func setRates(c *Config, value string) error {
	c.Rates, c.RatesECB, c.RatesFile = pricing.Rates{}, false, ""
	for _, item := range splitList(value) {
		path, isFile := strings.CutPrefix(item, "file:")
		switch {
		case (isFile || item == "ecb") && (c.RatesECB || c.RatesFile != ""):
			return errors.New("has two sources; write either ecb or file:PATH")
		case isFile && path == "":
			return errors.New("has no path after file:; write file:PATH")
		case isFile:
			c.RatesFile = path
		case item == "ecb":
			c.RatesECB = true
		default:
			if err := c.Rates.Add(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseLevel parses the market that determines the level of prices. It returns an empty
// string for consensus.
func parseLevel(value string) (string, error) {
	if value == string(pricing.Consensus) {
		return "", nil
	}
	return value, nil
}

// parseMarketFees parses a list of fees of markets in basis points.
func parseMarketFees(value string) (map[string]int64, error) {
	const most = 10_000
	fees := map[string]int64{}
	for _, item := range splitList(value) {
		market, text, _ := strings.Cut(item, "=")
		fee, err := strconv.ParseInt(text, 10, 64)
		_, twice := fees[market]
		switch {
		case market == "" || err != nil || fee < 0 || fee > most:
			return nil, fmt.Errorf("%.60q is not a fee: write a market and 0 to %d basis points, such as skinport=800", item, most)
		case twice:
			return nil, fmt.Errorf("two fees of %q: remove one", market)
		}
		fees[market] = fee
	}
	return fees, nil
}

// parseHosts parses a list of host names and addresses, with or without a port.
func parseHosts(value string) ([]string, error) {
	hosts := splitList(value)
	for _, host := range hosts {
		if u, err := url.Parse("//" + host); err != nil || u.Host != host || u.Hostname() == "" {
			return nil, fmt.Errorf("%.60q is not a host: write hooks.internal or 10.0.0.5:8080", host)
		}
	}
	return hosts, nil
}

// parseSchedule parses a schedule. It returns the zero Schedule for "none".
func parseSchedule(value string) (s Schedule, err error) {
	if value == "none" {
		return s, nil
	}
	if s, err = ParseSchedule(value); err != nil {
		err = fmt.Errorf("%q: %w", value, err)
	}
	return s, err
}

func setFeeRules(c *Config, value string) error {
	c.FeeRules, c.FeeRulesURL = "", nil
	scheme, _, isURL := strings.Cut(value, "://")
	if !isURL {
		c.FeeRules = value
		return nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || (scheme != "https" && (scheme != "http" || !isLoopback(u.Hostname()))) {
		// The error must not contain the value, which may include a key.
		return errors.New("is not an https address without a password; write https://host/path, http://127.0.0.1/path, or the path of a file")
	}
	c.FeeRulesURL = u
	return nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.IsLoopback())
}

func parseBaseURL(value string) (*url.URL, error) {
	u, err := url.Parse(value)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		// The error must not contain the value, which may include a key.
		return nil, errors.New("is not a base address; write http(s)://host:port/path, without user, query or fragment")
	}
	return u, nil
}

// splitList splits a value at commas and removes spaces around the parts. It keeps empty
// parts, so that parsers report them.
func splitList(value string) []string {
	parts := strings.Split(value, ",")
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
	}
	return parts
}

func parseSwitch(value string) (on bool, err error) {
	if value != "on" && value != "off" {
		return false, fmt.Errorf("%q is unknown; want on or off", value)
	}
	return value == "on", nil
}
