package hostile

// pending are the cases that fail until their defence is there, by the sentence
// of the case, with the defence that they wait for. `go test ./test/hostile
// -hostile.pending` runs them alone and reports their harm. A case leaves this
// table with the change that makes it pass.
var pending = map[string]string{}
