package normalise

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func bidiControl(r rune) bool {
	return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0x200E || r == 0x200F || r == 0x061C
}

func invisible(r rune) bool {
	switch {
	case r >= 0x200B && r <= 0x200D, r >= 0x2060 && r <= 0x2064, r >= 0x206A && r <= 0x206F, r >= 0xFFF9 && r <= 0xFFFB,
		r >= 0x1D173 && r <= 0x1D17A, r >= 0x180B && r <= 0x180F:
		return true
	}
	switch r {
	case 0xFEFF, 0x00AD, 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0:
		return true
	}
	return false
}

// punctuation maps signs that a URL parser, a shell or a reader takes for an
// ASCII one although NFKC keeps them apart.
func punctuation(r rune) (rune, bool) {
	switch r {
	case 0x3002, 0xFF61: // ideographic full stops: browsers take them for a dot in a host
		return '.', true
	case 0x2018, 0x2019, 0x201A, 0x02BC:
		return '\'', true
	case 0x201C, 0x201D, 0x201E:
		return '"', true
	case 0x2010, 0x2011, 0x2012, 0x2013, 0x2212:
		return '-', true
	case 0x2044, 0x2215, 0x29F8:
		return '/', true
	case 0x00A0, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0x1680:
		return ' ', true
	}
	return r, false
}

// letterLike maps letters in boxes and flags, which NFKC does not know.
func letterLike(r rune) (byte, bool) {
	switch {
	case r >= 0x1F150 && r <= 0x1F169:
		return byte('A' + r - 0x1F150), true
	case r >= 0x1F170 && r <= 0x1F189:
		return byte('A' + r - 0x1F170), true
	case r >= 0x1F1E6 && r <= 0x1F1FF:
		return byte('A' + r - 0x1F1E6), true
	}
	return 0, false
}

// confusables is a compact table of letters that look like a Latin one. Pairs
// are "letter, what it looks like".
const confusablesStrong = "аaеeоoрpсcуyхxіiѕsјjһhԁdԛqԝwАAВBЕEЅSІIЈJКKМMНHОOРPСCТTУYХXҮYԌG" +
	"αaοoρpνvΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧX" +
	"օoսuհhոnցgքpԼLՕOՍUɑaɡgɩiıiᴀaʙbᴄcᴅdᴇeꜰfɢgʜhɪiᴊjᴋkʟlᴍmɴnᴏoᴘpʀrꜱsᴛtᴜuᴠvᴡwʏyᴢzⅼlⅰi"

const confusablesWeak = "вbгrкkмmнhтtпnиuьbзeлnбbяrєeεeιiκkτtυuσoωwηnμuβbγyχxδdθoπnյjրnզqկhפoסoοoוlاl"

var strongTable, weakTable = pairs(confusablesStrong), pairs(confusablesWeak)

func pairs(s string) map[rune]byte {
	m := map[rune]byte{}
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		m[r] = s[n]
		s = s[n+1:]
	}
	return m
}

// confusable returns the Latin letter that r looks like, and whether it does
// so even in a word of nothing but look-alikes.
func confusable(r rune) (c byte, strong bool) {
	if r > 0x217F && r < 0xA730 || r > 0xA731 { // outside the tables: most text
		return 0, false
	}
	if c, ok := strongTable[r]; ok {
		return c, true
	}
	return weakTable[r], false
}

// bases holds the letter under the diacritics for Latin letters.
var bases = buildBases()

func buildBases() map[rune]string {
	m := map[rune]string{'ø': "o", 'Ø': "O", 'ł': "l", 'Ł': "L", 'đ': "d", 'Đ': "D", 'ß': "ss", 'æ': "ae", 'Æ': "AE",
		'œ': "oe", 'Œ': "OE", 'ſ': "s", 'ħ': "h", 'ŧ': "t", 'ƒ': "f"}
	for _, block := range [][2]rune{{0xC0, 0x24F}, {0x1E00, 0x1EFF}} {
		for r := block[0]; r <= block[1]; r++ {
			d := norm.NFD.String(string(r))
			if d[0] < utf8.RuneSelf && len(d) > 1 {
				m[r] = d[:1]
			}
		}
	}
	return m
}

func baseLetter(r rune) string {
	if r < 0xC0 || r > 0x24F && r < 0x1E00 || r > 0x1EFF {
		return ""
	}
	return bases[r]
}

// entity reads an HTML character reference at the start of s: the forms that
// hide letters and the few named ones that hide markup. It must end in a
// semicolon, so that "a&lt=b" of a query string stays.
func entity(s string) (rune, int) {
	const longest = 10 // &#x10FFFF;
	end := strings.IndexByte(s[:min(len(s), longest+1)], ';')
	if end < 3 || s[0] != '&' {
		return 0, 0
	}
	name := s[1:end]
	if name[0] == '#' {
		digits, base := name[1:], 10
		if digits != "" && digits[0]|0x20 == 'x' {
			digits, base = digits[1:], 16
		}
		v, err := strconv.ParseUint(digits, base, 32)
		if err != nil || v == 0 || v > utf8.MaxRune || !utf8.ValidRune(rune(v)) {
			return 0, 0
		}
		return rune(v), end + 1
	}
	switch name {
	case "lt":
		return '<', end + 1
	case "gt":
		return '>', end + 1
	case "amp":
		return '&', end + 1
	case "quot":
		return '"', end + 1
	case "apos":
		return '\'', end + 1
	case "nbsp":
		return ' ', end + 1
	case "colon":
		return ':', end + 1
	case "sol":
		return '/', end + 1
	case "period":
		return '.', end + 1
	}
	return 0, 0
}
