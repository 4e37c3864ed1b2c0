package api

import (
	"io"
	"net/http"

	"assay/internal/operator"
	"assay/internal/strictjson"
	"assay/internal/view"
)

// operatorHandlers serve the operators, who can log in to the operator's page.
type operatorHandlers struct{ *Deps }

// operatorBody describes the body of POST /api/operators.
type operatorBody struct {
	Name     string `json:"name"`
	Role     string `json:"role"`
	Password string `json:"password"`
}

// operatorPatch describes the body of PATCH /api/operators/{operator}.
type operatorPatch struct {
	Role     string `json:"role,omitempty"`
	Password string `json:"password,omitempty"`
	Disabled bool   `json:"disabled,omitempty"`
}

// maxOperatorText limits roles and passwords in a body, in bytes. The service has stricter limits.
const maxOperatorText = 256

func (h operatorHandlers) operators(c *call) (any, error) {
	found, err := h.Operators.List(c.Context())
	page := view.Page[view.Operator]{Items: make([]view.Operator, len(found))}
	for i := range found {
		page.Items[i] = view.OperatorOf(&found[i])
	}
	return page, err
}

func (h operatorHandlers) operator(c *call) (any, error) {
	return h.shown(c, c.values["operator"])
}

func (h operatorHandlers) shown(c *call, name string) (view.Operator, error) {
	found, err := h.Operators.Get(c.Context(), name)
	return view.OperatorOf(&found), err
}

func (h operatorHandlers) createOperator(c *call) (any, error) {
	name, change, err := decodeOperator(c.Body, true)
	if err != nil {
		return nil, err
	}
	if err := h.Operators.Add(c.Context(), name, *change.Role, *change.Password); err != nil {
		return nil, err
	}
	added, err := h.shown(c, name)
	return response{status: http.StatusCreated, location: "/api/operators/" + name, value: added}, err
}

func (h operatorHandlers) changeOperator(c *call) (any, error) {
	_, change, err := decodeOperator(c.Body, false)
	if err != nil {
		return nil, err
	}
	if err := h.Operators.Change(c.Context(), c.values["operator"], change); err != nil {
		return nil, err
	}
	return h.shown(c, c.values["operator"])
}

// decodeOperator decodes a new operator, or the changes of an existing one.
func decodeOperator(body io.Reader, isNew bool) (name string, change operator.Change, err error) {
	in := strictjson.NewReader(body)
	known := []string{"role", "password", "disabled"}
	if isNew {
		known = []string{"name", "role", "password"}
	}
	in.Object(known, func(member string) bool {
		switch {
		case member == "name" && isNew:
			name, _ = in.Text(1, operator.MaxName)
		case member == "role":
			if text, ok := in.Text(1, maxOperatorText); ok {
				role, err := operator.ParseRole(text)
				if err != nil {
					in.Fault("must be read or admin")
				}
				change.Role = &role
			}
		case member == "password":
			if text, ok := in.Text(1, maxOperatorText); ok {
				change.Password = &text
			}
		case member == "disabled" && !isNew:
			if disabled, ok := in.Bool(); ok {
				change.Disabled = &disabled
			}
		default:
			return false
		}
		return true
	})
	if isNew {
		in.Require("", "name", name != "")
		in.Require("", "role", change.Role != nil)
		in.Require("", "password", change.Password != nil)
	}
	return name, change, in.Finish()
}
