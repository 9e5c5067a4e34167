package hostile

// pending are the cases that fail until their defence is there, by the sentence
// of the case, with the defence that they wait for. `go test ./test/hostile -v
// -args -hostile.pending` runs them alone and reports their harm; a case that does
// none any more fails there. A case leaves this table with the change that makes
// it pass.
var pending = map[string]string{
	"1,000 members more and fewer without end": "slices of a change: the leader enqueues the new members of a job in one piece",
}
