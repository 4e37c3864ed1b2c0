package assay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Tolerance is how far the time of a webhook may differ from the clock of the receiver.
const Tolerance = 5 * time.Minute

// ErrSignature is the error for a message that was not signed with any of the secrets.
var ErrSignature = errors.New("no signature of the webhook matches: check the secret")

// VerifyWebhook returns nil if the message was signed with one of the secrets within the last five
// minutes, as Standard Webhooks specifies. body is the body as received. During a rotation pass both
// secrets. The server may repeat a message: ignore a Webhook-Id that you have seen.
func VerifyWebhook(header http.Header, body []byte, secrets ...string) error {
	return verifyAt(time.Now(), header, body, secrets)
}

func verifyAt(now time.Time, header http.Header, body []byte, secrets []string) error {
	sent := header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(sent, 10, 64)
	if err != nil {
		return fmt.Errorf("the header webhook-timestamp is %q, want seconds since 1970", sent)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > Tolerance || age < -Tolerance {
		return fmt.Errorf("the webhook was sent at %s, more than %s from now: check the clock", time.Unix(seconds, 0).UTC().Format(time.RFC3339), Tolerance)
	}
	signatures := strings.Fields(header.Get("Webhook-Signature"))
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) == 0 {
			return errors.New("invalid webhook secret: use the complete secret, which begins with whsec_")
		}
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(header.Get("Webhook-Id") + "." + sent + ".")) // a hash never returns an error
		_, _ = mac.Write(body)
		want := mac.Sum(nil)
		for _, signature := range signatures {
			version, text, _ := strings.Cut(signature, ",")
			got, err := base64.StdEncoding.DecodeString(text)
			if version == "v1" && err == nil && hmac.Equal(got, want) {
				return nil
			}
		}
	}
	return ErrSignature
}
