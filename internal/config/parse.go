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

// maxDuration bounds every duration, so that no sum of a few overflows.
const maxDuration = 8760 * time.Hour

// setter reads the value of a setting into a configuration. Its error reads on after the
// setting's name and never shows the value of a secret.
type setter func(*Config, string) error

// into returns the setter of a field whose values parse reads.
func into[T any](field func(*Config) *T, parse func(string) (T, error)) setter {
	return func(c *Config, value string) (err error) {
		*field(c), err = parse(value)
		return err
	}
}

// intoProvider is into for a field of a provider.
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
	mostRequests = 1_000_000     // in a limit
	mostInQuota  = 1_000_000_000 // requests
	mostMarkets  = 64            // that are requested from one provider
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
			return q, fmt.Errorf("%q is not a quota; write requests a day, a month or both, like 1000/day,30000/month", value)
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
			return nil, fmt.Errorf("%q is not the key of a market; write a comma list like skinport,csfloat", key)
		}
		if slices.Contains(keys[:i], key) {
			return nil, fmt.Errorf("%q is there twice; remove one", key)
		}
	}
	if len(keys) > mostMarkets {
		return nil, fmt.Errorf("%d markets are too many; name at most %d", len(keys), mostMarkets)
	}
	return keys, nil
}

var marketKey = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// shortDuration writes 72h0m0s as 72h.
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

// providerList returns the parser of a list of known providers.
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
			case !slices.Contains(faults, "names "+name+" twice"):
				faults = append(faults, "names "+name+" twice")
			}
		}
		faults = append(faults, slices.Compact(unknown)...)
		if len(unknown) > 0 {
			faults = append(faults, "there are "+strings.Join(known, ", "))
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
		err = fmt.Errorf("%s is not a currency of ISO 4217 that is used for payment; write one such as USD or EUR", c)
	}
	return c, err
}

// setRates reads where rates come from and rates that are fixed.
func setRates(c *Config, value string) error {
	c.Rates, c.RatesECB, c.RatesFile = pricing.Rates{}, false, ""
	for _, item := range splitList(value) {
		path, isFile := strings.CutPrefix(item, "file:")
		switch {
		case (isFile || item == "ecb") && (c.RatesECB || c.RatesFile != ""):
			return errors.New("names two places; write one of ecb and file:PATH")
		case isFile && path == "":
			return errors.New("names no file; write file:PATH")
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

// parseLevel reads the market at whose level prices are stated; none for the consensus.
func parseLevel(value string) (string, error) {
	if value == string(pricing.Consensus) {
		return "", nil
	}
	return value, nil
}

// parseSchedule reads a schedule; "none" is the zero one.
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
		// The value is not shown: what is wrong may be a key in it.
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
		// The value is not shown: what is wrong may be a key in it.
		return nil, errors.New("is not a base address; write http(s)://host:port/path, without user, query or fragment")
	}
	return u, nil
}

// splitList splits at commas and drops spaces around the parts. An empty part
// stays, so that its reader refuses it.
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
