package firewall

// placeholder until events land
type sessions struct{}

func newSessions(int) *sessions { return &sessions{} }
