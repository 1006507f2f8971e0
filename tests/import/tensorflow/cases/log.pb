
;
x0Placeholder*
dtype0*
shape:

LogLogx0*
T0
"
IdentityIdentityLog*
T0