package web

import (
	"net/http"

	"assay/internal/fault"
	"assay/internal/operator"
)

// operatorsPage lists the operators.
type operatorsPage struct {
	frame
	Operators []operator.Operator
	Form      form
}

func (s *accessPages) operators(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.showOperators(w, r, sess, form{})
}

// showOperators shows the list, and the form of a new operator with the given entries.
func (s *accessPages) showOperators(w http.ResponseWriter, r *http.Request, sess session, entered form) error {
	list, err := s.Operators.List(r.Context())
	if err != nil {
		return err
	}
	return s.showForm(w, r, entered, "operators", operatorsPage{frame: s.frame("Operators", "operators", &sess), Operators: list, Form: entered})
}

func (s *accessPages) addOperator(w http.ResponseWriter, r *http.Request, sess session) error {
	name := r.PostFormValue("name")
	role, err := operator.ParseRole(r.PostFormValue("role"))
	if err == nil {
		err = s.Operators.Add(r.Context(), name, role, r.PostFormValue("password"))
	}
	if refused := fault.Of(err); refused != nil {
		return s.showOperators(w, r, sess, refusedForm(r, refused))
	}
	return s.done(w, r, sess, flash{Good: true, Text: "The operator " + name + " can sign in."}, err)
}

func (s *accessPages) setRole(w http.ResponseWriter, r *http.Request, sess session) error {
	name := r.PathValue("operator")
	role, err := operator.ParseRole(r.PostFormValue("role"))
	if err == nil {
		err = s.Operators.SetRole(r.Context(), name, role)
	}
	return s.done(w, r, sess, flash{Good: true, Text: "The operator " + name + " has the role " + role.String() + ". The previous sessions have ended."}, err)
}

func (s *accessPages) setPassword(w http.ResponseWriter, r *http.Request, sess session) error {
	name := r.PathValue("operator")
	err := s.Operators.SetPassword(r.Context(), name, r.PostFormValue("password"))
	return s.done(w, r, sess, flash{Good: true, Text: "The operator " + name + " has a new password. The previous sessions have ended."}, err)
}

func (s *accessPages) disableOperator(w http.ResponseWriter, r *http.Request, sess session) error {
	name := r.PathValue("operator")
	err := s.Operators.SetDisabled(r.Context(), name, true)
	return s.done(w, r, sess, flash{Good: true, Text: "The operator " + name + " is disabled. All sessions have ended."}, err)
}

func (s *accessPages) enableOperator(w http.ResponseWriter, r *http.Request, sess session) error {
	name := r.PathValue("operator")
	err := s.Operators.SetDisabled(r.Context(), name, false)
	return s.done(w, r, sess, flash{Good: true, Text: "The operator " + name + " can sign in again."}, err)
}
