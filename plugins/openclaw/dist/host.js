// As much of OpenClaw's plugin API (2026.9) as the plugin uses. The host calls
// it experimental, so everything that comes from it is checked before use.
export {};
