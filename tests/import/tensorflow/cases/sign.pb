
;
x0Placeholder*
dtype0*
shape:

SignSignx0*
T0
#
IdentityIdentitySign*
T0