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
	r, status := decode(quotaRenameDecoder, doc)
	switch {
	case status != nil:
		return QuotaRename{}, status
	case r.From == "":
		return QuotaRename{}, invalid("from", "%q: want the name of a node of the tree", r.From)
	case !IsTreeName(r.To):
		return QuotaRename{}, invalid("to", "%q is not a name of a node: want 1..63 letters, digits, '-', '_' or '.'", clip(r.To))
	}
	return *r, nil
}
