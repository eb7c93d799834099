package credential

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.org/auditd/schema"
)

const phrase = "correct horse battery"

func keeper(t *testing.T) (*Keeper, string, *time.Time) {
	t.Helper()
	dir := t.TempDir()
	hook, err := HookToken(filepath.Join(dir, "state", "hook.token"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	k, err := NewKeeper(Config{HookToken: hook, PassphrasePath: filepath.Join(dir, "owner.json"), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return k, filepath.Join(dir, "owner.json"), &now
}

func TestHookToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "hook.token")
	one, err := HookToken(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	two, err := HookToken(path)
	if err != nil || one != two {
		t.Errorf("second start: %v, another token: %v", err, one != two)
	}
	for name, spoil := range map[string]func() error{
		"readable by others": func() error { return os.Chmod(path, 0o640) },
		"cut":                func() error { os.Chmod(path, 0o600); return os.WriteFile(path, []byte(one[:20]), 0o600) },
		"empty":              func() error { return os.WriteFile(path, nil, 0o600) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if got, err := HookToken(path); err == nil {
			t.Errorf("%s: accepted %q", name, got)
		} else if strings.Contains(err.Error(), one[:20]) {
			t.Errorf("%s: the error quotes the token", name)
		}
		os.Chmod(path, 0o600)
		os.WriteFile(path, []byte(one), 0o600)
	}
}

func TestOwnerSession(t *testing.T) {
	k, path, now := keeper(t)
	if k.HasOwner() {
		t.Error("an owner before there is one")
	}
	if _, _, err := k.Login(phrase); !errors.Is(err, ErrNoPassphrase) {
		t.Errorf("login without a passphrase: %v", err)
	}
	if err := SetPassphrase(path, "short", "tty", *now, false); err == nil {
		t.Error("a short passphrase was taken")
	}
	if err := SetPassphrase(path, phrase, "tty", *now, false); err != nil {
		t.Fatal(err)
	}
	if err := SetPassphrase(path, "another passphrase", "tty", *now, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second first passphrase: %v", err)
	}
	if _, _, err := k.Login("wrong horse battery"); !errors.Is(err, ErrWrong) {
		t.Errorf("wrong passphrase: %v", err)
	}
	token, _, err := k.Login(phrase)
	if err != nil {
		t.Fatal(err)
	}
	if k.Check(token) != schema.CredentialOwner {
		t.Error("the session has no rights")
	}
	code, _, err := k.Code()
	if err != nil {
		t.Fatal(err)
	}
	if k.Check(code) != schema.CredentialNone {
		t.Error("a code is a credential")
	}
	second, _, err := k.LoginCode(code)
	if err != nil || k.Check(second) != schema.CredentialOwner {
		t.Errorf("login by code: %v", err)
	}
	if _, _, err := k.LoginCode(code); !errors.Is(err, ErrWrong) {
		t.Errorf("code used twice: %v", err)
	}
	k.Logout(second)
	if k.Check(second) != schema.CredentialNone {
		t.Error("rights after logout")
	}
	*now = now.Add(11 * time.Minute)
	if k.Check(token) != schema.CredentialNone {
		t.Error("rights after expiry")
	}
}

// TestRenewal: a browser's session lives while it is used, and not for ever.
func TestRenewal(t *testing.T) {
	k, _, now := keeper(t)
	code, _, err := k.Code()
	if err != nil {
		t.Fatal(err)
	}
	token, first, err := k.LoginCode(code)
	if err != nil {
		t.Fatal(err)
	}
	start := *now
	until, ok := k.Renew(token)
	if !ok || !until.After(first) {
		t.Fatalf("renewed %v until %v, it was %v", ok, until, first)
	}
	for now.Sub(start) < 11*time.Hour+30*time.Minute {
		*now = now.Add(20 * time.Minute)
		if until, ok = k.Renew(token); !ok || until.After(start.Add(12*time.Hour)) {
			t.Fatalf("after %v: %v until %v", now.Sub(start), ok, until)
		}
	}
	*now = start.Add(12 * time.Hour)
	if _, ok := k.Renew(token); ok || k.Check(token) != schema.CredentialNone {
		t.Error("renewed beyond its longest life")
	}
	if _, ok := k.Renew("ao_" + strings.Repeat("0", 64)); ok {
		t.Error("a session that never was is renewed")
	}
}

func TestWrongTokensHaveNoRights(t *testing.T) {
	k, _, _ := keeper(t)
	for _, token := range []string{"", " ", "ah_", "ao_", "ah_" + strings.Repeat("0", 64), strings.Repeat("x", 1<<16)} {
		if c := k.Check(token); c != schema.CredentialNone {
			t.Errorf("%.20q has rights %v", token, c)
		}
	}
}

func TestGuessingIsSlow(t *testing.T) {
	k, path, now := keeper(t)
	if err := SetPassphrase(path, phrase, "tty", *now, false); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for range 8 {
		if _, _, err := k.LoginCode("guess"); errors.Is(err, ErrTooMany) {
			refused++
		}
	}
	if refused != 3 {
		t.Errorf("%d of 8 attempts in no time were refused, want 3", refused)
	}
	*now = now.Add(10 * time.Second)
	if _, _, err := k.Login(phrase); err != nil {
		t.Errorf("after a pause: %v", err)
	}
}

// TestAPlantedPassphraseChangesNothing: a running daemon keeps the passphrase
// it knows when the file is replaced, and says that it was.
func TestAPlantedPassphraseChangesNothing(t *testing.T) {
	k, path, now := keeper(t)
	if err := SetPassphrase(path, phrase, "tty", *now, false); err != nil {
		t.Fatal(err)
	}
	if !k.HasOwner() || k.OwnerFileChanged() {
		t.Fatal("the first passphrase was not taken")
	}
	if err := SetPassphrase(path, "the agent's own one", "tty", *now, true); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Login("the agent's own one"); !errors.Is(err, ErrWrong) {
		t.Errorf("planted passphrase: %v", err)
	}
	if _, _, err := k.Login(phrase); err != nil {
		t.Errorf("the owner's: %v", err)
	}
	if !k.OwnerFileChanged() {
		t.Error("the change went unnoticed")
	}
	os.Remove(path)
	if !k.OwnerFileChanged() {
		t.Error("the removal went unnoticed")
	}
}

func TestBrokenPassphraseFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "owner.json")
	if err := SetPassphrase(path, phrase, "tty", time.Unix(1, 0), false); err != nil {
		t.Fatal(err)
	}
	good, _ := os.ReadFile(path)
	for name, bad := range map[string]string{
		"empty": "", "cut": string(good[:len(good)/2]), "unknown field": strings.Replace(string(good), `{`, `{"x":1,`, 1),
		"other algorithm": strings.Replace(string(good), "argon2id", "plain", 1), "no cost": strings.Replace(string(good), `"time":3`, `"time":0`, 1),
		"endless": strings.Replace(string(good), `"time":3`, `"time":4000000`, 1), "no hash": strings.Replace(string(good), `"hash":"`, `"hash":"","salt2":"`, 1),
	} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := NewKeeper(Config{HookToken: "x", PassphrasePath: path}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
