package fault

// Problem is the body of every HTTP error response (RFC 9457).
type Problem struct {
	Type      string  `json:"type"` // always about:blank; Code identifies the problem
	Title     string  `json:"title"`
	Status    int     `json:"status"`
	Detail    string  `json:"detail"`
	Code      string  `json:"code"`
	RequestID string  `json:"requestId"`
	Errors    []Field `json:"errors,omitempty"`
	Change    string  `json:"change,omitempty"` // only with the code cursor_expired; see Error.Change
}

// Status returns the HTTP status of a kind.
func (k Kind) Status() int {
	switch k {
	case Invalid:
		return 400
	case Unauthorized:
		return 401
	case Forbidden:
		return 403
	case NotFound:
		return 404
	case Conflict:
		return 409
	case Unprocessable:
		return 422
	case TooLarge:
		return 413
	case Expired:
		return 410
	case Unavailable, Busy, Damaged:
		return 503
	case Upstream:
		return 502
	default:
		return 500
	}
}
