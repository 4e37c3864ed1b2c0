package pricelist

import "io"

// readNDJSON reads a list of JSON objects, one a line. A list cut at the end of
// a line looks whole; only the size of the list as a whole can tell.
func readNDJSON(src io.Reader, r *rows) error {
	j := newJSONReader(src, r)
	for {
		switch err := j.row(nil); err {
		case nil:
		case io.EOF:
			return j.check()
		default:
			return err
		}
	}
}
