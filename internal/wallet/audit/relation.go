package audit

// relations runs the SQL checks that compare rows of different tables.
func (v *audit) relations() error {
	for _, statement := range statements() {
		if err := v.records.related(v.scope, statement, v.relation); err != nil {
			return err
		}
	}
	return nil
}

func (v *audit) relation(r related) {
	f := r.Finding
	if r.transaction != 0 {
		f.transaction, f.Message = r.transaction, v.transactionFinding(r.transaction, "", "", f.Message).Message
	}
	if f.UserID == "" {
		f.UserID = v.only
	}
	v.fail(r.check, f)
	if r.changed {
		v.suspect(f)
	}
}

// transactionFinding returns a finding about a transaction.
func (v *audit) transactionFinding(transaction int64, expected, actual, message string) Finding {
	f := Finding{UserID: v.only, Expected: expected, Actual: actual, Message: message, transaction: transaction}
	if transaction != 0 {
		f.Message = "Transaction " + integer(transaction) + ": " + message
	}
	return f
}

// place sets the entry of each finding about a transaction. It is the user's entry, or the
// first entry of the transaction.
func (v *audit) place() error {
	unplaced := v.unplaced
	v.unplaced = nil
	ids := make([]int64, 0, len(unplaced))
	for _, f := range unplaced {
		ids = append(ids, f.transaction)
	}
	entries, err := v.records.EntriesOf(ids)
	if err != nil {
		return err
	}
	first := map[int64]*Entry{}
	for i := range entries {
		e := &entries[i]
		if known := first[e.Transaction]; known == nil || e.User == v.only && known.User != v.only {
			first[e.Transaction] = e
		}
	}
	for _, f := range unplaced {
		if e := first[f.transaction]; e != nil && (v.only == "" || e.User == v.only) {
			f.UserID, f.Currency, f.Seq = e.User, e.Currency, &e.Number
		}
		v.note(f.check, f.Finding)
	}
	return nil
}
