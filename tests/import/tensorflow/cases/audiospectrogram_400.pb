
4
x0Placeholder*
dtype0*
shape:	¿
d
AudioSpectrogramAudioSpectrogramx0*
window_sizeê*
magnitude_squared(*
stride†
/
IdentityIdentityAudioSpectrogram*
T0