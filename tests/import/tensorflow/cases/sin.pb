
;
x0Placeholder*
dtype0*
shape:

SinSinx0*
T0
"
IdentityIdentitySin*
T0