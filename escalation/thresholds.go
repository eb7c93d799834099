package escalation

import "fmt"

// Thresholds are the predicate's numbers. Every boundary is inclusive: a "max"
// allows equality, a "min" asks for at least as much.
type Thresholds struct {
	SmallAllow      AllowLimits   `yaml:"small_allow" json:"small_allow"`
	SmallBlock      StopLimits    `yaml:"small_block" json:"small_block"`
	SmallDefer      StopLimits    `yaml:"small_defer" json:"small_defer"`
	CompleteRewrite RewriteLimits `yaml:"complete_rewrite" json:"complete_rewrite"`
	// HighResidual and HighUncertainty name the reason when a flow escalates
	// because of them.
	HighResidual    float64    `yaml:"high_residual" json:"high_residual"`
	HighUncertainty float64    `yaml:"high_uncertainty" json:"high_uncertainty"`
	Gray            GrayLimits `yaml:"gray" json:"gray"`
}

// AllowLimits say when an allow is clear: all three hold.
type AllowLimits struct {
	RiskMax        float64 `yaml:"risk_max" json:"risk_max"`
	UncertaintyMax float64 `yaml:"uncertainty_max" json:"uncertainty_max"`
	ResidualMax    float64 `yaml:"residual_max" json:"residual_max"`
}

// StopLimits say when a block or a defer is clear: both hold.
type StopLimits struct {
	RiskMin        float64 `yaml:"risk_min" json:"risk_min"`
	UncertaintyMax float64 `yaml:"uncertainty_max" json:"uncertainty_max"`
}

// RewriteLimits say when a rewrite is complete: all three hold.
type RewriteLimits struct {
	CompletenessMin float64 `yaml:"completeness_min" json:"completeness_min"`
	ResidualMax     float64 `yaml:"residual_max" json:"residual_max"`
	UncertaintyMax  float64 `yaml:"uncertainty_max" json:"uncertainty_max"`
}

// GrayLimits say when a flow is in the gray zone: enough risk together with
// enough exploitability or residual.
type GrayLimits struct {
	RiskMin           float64 `yaml:"risk_min" json:"risk_min"`
	ExploitabilityMin float64 `yaml:"exploitability_min" json:"exploitability_min"`
	ResidualMin       float64 `yaml:"residual_min" json:"residual_min"`
}

// Default returns the thresholds of the token-flow paper, Table 5.
func Default() Thresholds {
	return Thresholds{
		SmallAllow:      AllowLimits{RiskMax: 0.20, UncertaintyMax: 0.25, ResidualMax: 0.20},
		SmallBlock:      StopLimits{RiskMin: 0.75, UncertaintyMax: 0.30},
		SmallDefer:      StopLimits{RiskMin: 0.55, UncertaintyMax: 0.35},
		CompleteRewrite: RewriteLimits{CompletenessMin: 0.90, ResidualMax: 0.15, UncertaintyMax: 0.25},
		HighResidual:    0.45,
		HighUncertainty: 0.35,
		Gray:            GrayLimits{RiskMin: 0.35, ExploitabilityMin: 0.50, ResidualMin: 0.25},
	}
}

// Validate checks that every threshold is in [0,1] and that they leave no
// report both clearly allowed and clearly stopped.
func (t Thresholds) Validate() error {
	for _, v := range []struct {
		field string
		value float64
	}{
		{"small_allow.risk_max", t.SmallAllow.RiskMax},
		{"small_allow.uncertainty_max", t.SmallAllow.UncertaintyMax},
		{"small_allow.residual_max", t.SmallAllow.ResidualMax},
		{"small_block.risk_min", t.SmallBlock.RiskMin},
		{"small_block.uncertainty_max", t.SmallBlock.UncertaintyMax},
		{"small_defer.risk_min", t.SmallDefer.RiskMin},
		{"small_defer.uncertainty_max", t.SmallDefer.UncertaintyMax},
		{"complete_rewrite.completeness_min", t.CompleteRewrite.CompletenessMin},
		{"complete_rewrite.residual_max", t.CompleteRewrite.ResidualMax},
		{"complete_rewrite.uncertainty_max", t.CompleteRewrite.UncertaintyMax},
		{"high_residual", t.HighResidual},
		{"high_uncertainty", t.HighUncertainty},
		{"gray.risk_min", t.Gray.RiskMin},
		{"gray.exploitability_min", t.Gray.ExploitabilityMin},
		{"gray.residual_min", t.Gray.ResidualMin},
	} {
		if !(v.value >= 0 && v.value <= 1) { // also false for NaN
			return fmt.Errorf("%s: %v is outside [0,1]", v.field, v.value)
		}
	}
	if t.SmallAllow.RiskMax >= t.SmallDefer.RiskMin || t.SmallDefer.RiskMin > t.SmallBlock.RiskMin {
		return fmt.Errorf("small_allow.risk_max %v, small_defer.risk_min %v and small_block.risk_min %v must ascend",
			t.SmallAllow.RiskMax, t.SmallDefer.RiskMin, t.SmallBlock.RiskMin)
	}
	return nil
}
