package rest

// ParseExecInput is execInput, for tests.
var ParseExecInput = execInput
