// Package words says what it does, and what it does not, which is what nobody
// wants to read in ten words of comment.
package words
