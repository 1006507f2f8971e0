
;
x0Placeholder*
dtype0*
shape:

InvertInvertx0*
T0
%
IdentityIdentityInvert*
T0