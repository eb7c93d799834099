// Package dualview is the symbol table: it replaces untrusted or secret content
// by opaque tokens, and gives the content back only against a Grant.
//
// The deciding model sees symbols, people and programs see originals. What an
// attacker wrote can therefore not steer a tool call, as long as three things
// hold, and this package exists to make them hold:
//
//   - A symbol says nothing about its value. It is 96 random bits and a keyed
//     check; it cannot be guessed, forged, split or mangled into another one,
//     and never gets a second value.
//   - A value leaves only through Resolve, with a grant that names who allowed
//     it, for which owner, into which sink and until when; the zero grant
//     allows nothing. What is resolved is escaped for the place it goes to.
//   - A value is recognised when it comes back by another way. The content index
//     finds 64 normalised bytes of any value in whatever is read later.
//
// Whatever cannot be symbolised is an error, and the caller withholds it.
package dualview
