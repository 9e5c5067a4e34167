package api

import "github.com/musterd/muster/api/internal/strict"

// QuotaRename renames one node of a quota tree.
type QuotaRename struct {
	// From is the present name of the node.
	From string `json:"from" required:"true" example:"vision"`
	// To is the new name: 1 to 63 letters, digits, '-', '_' and '.'.
	To string `json:"to" required:"true" example:"perception"`
}

var quotaRenameDecoder = strict.For[QuotaRename]()

// DecodeQuotaRename reads the body of a rename.
func DecodeQuotaRename(doc []byte) (QuotaRename, *Status) {
	return decodeValue(quotaRenameDecoder, doc, func(r *QuotaRename) *Status {
		var faults faults
		if r.From == "" {
			faults.add(invalid("from", "%q: want the name of a node of the tree", r.From))
		}
		if !IsTreeName(r.To) {
			faults.add(invalid("to", "%q is not a name of a node: want 1..63 letters, digits, '-', '_' or '.'", clip(r.To)))
		}
		return faults.status()
	})
}
