package begin

// StartBy belongs to a listed change.
var StartBy int
