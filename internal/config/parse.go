package config

import (
	"errors"
	"fmt"
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

// Parsers return errors that read on after the setting's name and never show
// the value of a secret.

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, value string) error {
		*field(c) = value
		return nil
	}
}

func oneOf[T ~string](field func(*Config) *T, allowed ...T) func(*Config, string) error {
	return func(c *Config, value string) error {
		if !slices.Contains(allowed, T(value)) {
			words := make([]string, len(allowed))
			for i, word := range allowed {
				words[i] = string(word)
			}
			return fmt.Errorf("%q is unknown; want %s", value, orList(words))
		}
		*field(c) = T(value)
		return nil
	}
}

func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func duration(field func(*Config) *time.Duration, least, most time.Duration) func(*Config, string) error {
	return func(c *Config, value string) error {
		d, err := time.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("%q is no duration; write it like 30m or 6h, days as hours (168h)", value)
		}
		if d < least || d > most {
			return fmt.Errorf("%q is out of range; want %s to %s", value, shortDuration(least), shortDuration(most))
		}
		*field(c) = d
		return nil
	}
}

// mostRequests bounds the requests of a limit.
const mostRequests = 1_000_000

func providerLimit(provider string) func(*Config, string) error {
	return func(c *Config, value string) error {
		count, period, _ := strings.Cut(value, "/")
		n, err := strconv.Atoi(count)
		per, perErr := time.ParseDuration(period)
		if err != nil || perErr != nil || n < 1 || n > mostRequests || per < time.Millisecond || per > maxDuration {
			return fmt.Errorf("%q is no limit; write requests and a period like 8/5m", value)
		}
		s := c.Provider[provider]
		s.Limit = Limit{Requests: n, Per: per}
		c.Provider[provider] = s
		return nil
	}
}

// mostInQuota bounds the requests of a quota.
const mostInQuota = 1_000_000_000

func providerQuota(provider string) func(*Config, string) error {
	return func(c *Config, value string) error {
		var q Quota
		for part := range strings.SplitSeq(value, ",") {
			count, period, _ := strings.Cut(strings.TrimSpace(part), "/")
			of := map[string]*int64{"day": &q.Day, "month": &q.Month}[period]
			n, err := strconv.ParseInt(count, 10, 64)
			if err != nil || n < 1 || n > mostInQuota || of == nil || *of != 0 {
				return fmt.Errorf("%q is no quota; write requests a day, a month or both, like 1000/day,30000/month", value)
			}
			*of = n
		}
		s := c.Provider[provider]
		s.Quota = q
		c.Provider[provider] = s
		return nil
	}
}

// mostMarkets bounds the markets that are requested from one provider.
const mostMarkets = 64

func markets(provider string) func(*Config, string) error {
	return func(c *Config, value string) error {
		keys := splitList(value)
		for i, key := range keys {
			if !marketKey.MatchString(key) {
				return fmt.Errorf("%q is no key of a market; write a comma list like skinport,csfloat", key)
			}
			if slices.Contains(keys[:i], key) {
				return fmt.Errorf("%q is there twice", key)
			}
		}
		if len(keys) > mostMarkets {
			return fmt.Errorf("%d markets are too many; name at most %d", len(keys), mostMarkets)
		}
		s := c.Provider[provider]
		s.Markets = keys
		c.Provider[provider] = s
		return nil
	}
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

func number(field func(*Config) *int, least, most int) func(*Config, string) error {
	return func(c *Config, value string) error {
		n, err := wholeNumber(value, least, most)
		if err != nil {
			return err
		}
		*field(c) = n
		return nil
	}
}

func wholeNumber(value string, least, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q is not a whole number from %d to %d", value, least, most)
	}
	return n, nil
}

func setRetentionDays(c *Config, value string) error {
	days, err := wholeNumber(value, 0, 36_500)
	if err != nil {
		return err
	}
	c.JobRetention = time.Duration(days) * 24 * time.Hour
	return nil
}

func setListenAddr(c *Config, value string) error {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return fmt.Errorf("%q is no address; write host:port, such as 127.0.0.1:8080 or [::1]:8080", value)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q has no port from 0 to 65535", value)
	}
	c.ListenAddr = value
	return nil
}

func setTrustedProxies(c *Config, value string) error {
	c.TrustedProxies = nil
	for _, item := range splitList(value) {
		network, err := netip.ParsePrefix(item)
		if err != nil {
			addr, err := netip.ParseAddr(item)
			if err != nil || addr.Zone() != "" {
				return fmt.Errorf("%q is neither an address nor a network; write 10.0.0.7 or 10.0.0.0/8", item)
			}
			network = netip.PrefixFrom(addr, addr.BitLen())
		}
		c.TrustedProxies = append(c.TrustedProxies, network.Masked())
	}
	return nil
}

func setLogLevel(c *Config, value string) error {
	levels := []string{"debug", "info", "warn", "error"}
	if !slices.Contains(levels, value) {
		return fmt.Errorf("%q is unknown; want %s", value, orList(levels))
	}
	return c.LogLevel.UnmarshalText([]byte(value))
}

func providerList(known []string) func(*Config, string) error {
	return func(c *Config, value string) error {
		c.Providers = nil
		if value == "none" {
			return nil
		}
		var unknown, faults []string
		for _, name := range splitList(value) {
			switch {
			case !slices.Contains(known, name):
				unknown = append(unknown, strconv.Quote(name))
			case !slices.Contains(c.Providers, name):
				c.Providers = append(c.Providers, name)
			case !slices.Contains(faults, "names "+name+" twice"):
				faults = append(faults, "names "+name+" twice")
			}
		}
		for _, name := range slices.Compact(unknown) {
			faults = append(faults, name+" is no price provider")
		}
		if len(unknown) > 0 {
			faults = append(faults, "there are "+strings.Join(known, ", "))
		}
		if len(faults) > 0 {
			return errors.New(strings.Join(faults, "; "))
		}
		return nil
	}
}

func setCurrency(c *Config, value string) (err error) {
	if c.Currency, err = money.ParseCurrency(value); err == nil && !c.Currency.Circulates() {
		err = fmt.Errorf("%s is no currency of ISO 4217 that somebody pays with; write one such as USD or EUR", c.Currency)
	}
	return err
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

func setEstimate(c *Config, value string) error {
	return oneOf(func(c *Config) *pricing.Method { return &c.Estimate }, pricing.Consensus, pricing.Average, pricing.Median)(c, value)
}

func setGuard(c *Config, value string) error {
	return oneOf(func(c *Config) *pricing.Guard { return &c.Guard }, pricing.Flag, pricing.Hold)(c, value)
}

// setLevel sets the market at whose level prices are stated; none for the consensus.
func setLevel(c *Config, value string) error {
	c.Level = value
	if value == string(pricing.Consensus) {
		c.Level = ""
	}
	return nil
}

// schedule sets a schedule; "none" is the zero one.
func schedule(field func(*Config) *Schedule) func(*Config, string) error {
	return func(c *Config, value string) error {
		parsed := Schedule{}
		if value != "none" {
			var err error
			if parsed, err = ParseSchedule(value); err != nil {
				return fmt.Errorf("%q: %w", value, err)
			}
		}
		*field(c) = parsed
		return nil
	}
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
		return errors.New("is no https address without a password; write https://host/path, http://127.0.0.1/path, or the path of a file")
	}
	c.FeeRulesURL = u
	return nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.IsLoopback())
}

func providerURL(provider string) func(*Config, string) error {
	return baseURL(func(c *Config, u *url.URL) {
		s := c.Provider[provider]
		s.BaseURL = u
		c.Provider[provider] = s
	})
}

func baseURL(set func(*Config, *url.URL)) func(*Config, string) error {
	return func(c *Config, value string) error {
		u, err := url.Parse(value)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
			u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
			// The value is not shown: what is wrong may be a key in it.
			return errors.New("is no base address; write http(s)://host:port/path, without user, query or fragment")
		}
		set(c, u)
		return nil
	}
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

func setMigrate(c *Config, value string) error {
	if value != "on" && value != "off" {
		return fmt.Errorf("%q is unknown; want on or off", value)
	}
	c.Migrate = value == "on"
	return nil
}
