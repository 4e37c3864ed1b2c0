package web

import (
	"net/http"

	"assay/internal/access"
	"assay/internal/fault"
	"assay/internal/operator"
)

// passwordPage is the form with which operators change their own password.
type passwordPage struct{ frame }

func (s *accessPages) password(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.show(w, r, "password", passwordPage{s.frame("Your password", "", &sess)})
}

// changePassword changes the password of the session's operator. All sessions of the operator
// end, and this browser gets a new one.
func (s *accessPages) changePassword(w http.ResponseWriter, r *http.Request, sess session) error {
	err := s.checkNewPassword(r, sess)
	if err == nil {
		sess.token = randomText()
		err = s.Operators.Open(r.Context(), sess.token, operator.Session{Role: sess.role, Operator: sess.operator})
	}
	if err == nil {
		http.SetCookie(w, cookie(tokenCookie, sess.token, access.OverTLS(r, s.TrustedProxies), 0))
	}
	return s.done(w, r, sess, flash{Good: true, Text: "Your password is changed. Your sessions in other browsers have ended."}, err)
}

// checkNewPassword stores the new password of a form if the current password is correct. A wrong
// password counts as a failed sign-in.
func (s *accessPages) checkNewPassword(r *http.Request, sess session) error {
	next := r.PostFormValue("password")
	switch {
	case sess.operator == "":
		return fault.New(fault.Invalid, "invalid_body", "This session belongs to no operator. Change the secret in the settings.")
	case next != r.PostFormValue("again"):
		return fault.New(fault.Invalid, "invalid_body", "The two new passwords differ. Enter the same one twice.")
	}
	ok, err := s.Operators.ChangePassword(r.Context(), sess.operator, r.PostFormValue("current"), next)
	if err != nil || ok {
		return err
	}
	client := access.Client(r, s.TrustedProxies)
	failure := s.Failures.Fail(client)
	if failure.Log {
		s.Logger.WarnContext(r.Context(), "wrong current password", "operator", sess.operator, "client", client.String(),
			"limited", failure.Over(), "unlogged", failure.Unlogged)
	}
	if failure.Delay > 0 {
		s.Failures.Wait(r.Context(), failure.Delay)
	}
	return fault.New(fault.Invalid, "invalid_body", "The current password is wrong. Nothing was changed.")
}
